/* The egress worker: it accepts, parses hostile bytes, asks the parent, and moves bytes between two descriptors that it
   was given. One worker that an attacker owns must not harm the others: listeners are shared by all, so nothing that
   changes a socket reaches their numbers. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "policy/confinement/calls.h"
#include "shared/limits.h"

static const struct call sockets[] = {
  CALL_IF(accept4, "clients, from the listeners only", LISTENER_FD(0), INT_IS(3, SOCK_NONBLOCK | SOCK_CLOEXEC)),
  CALL_IF(close, "the end of a session; a number below would go to the next session, out of reach of the checks",
          SESSION_FD(0)),
  CALL_IF(shutdown, "half-close passed on; a listener shut down would be silent for every worker", SESSION_FD(0)),
  CALL_IF(getsockopt, "writable check: a pending error", INT_IS(1, SOL_SOCKET), INT_IS(2, SO_ERROR)),
  CALL_IF(setsockopt, "a reset passed on as a reset", SESSION_FD(0), INT_IS(1, SOL_SOCKET), INT_IS(2, SO_LINGER)),
  CALL(writev, "glibc's last words when it finds its memory damaged"),
  CALL_IF(splice, "bulk through a pipe", INT_WITHIN(5, SPLICE_F_MOVE | SPLICE_F_NONBLOCK)),
#ifdef __NR_poll
  CALL(poll, "writable check: hung up or reset"),
#endif
  CALL(ppoll, "writable check, where poll is made of it"),
};

const struct call_table calls_worker_sockets = CALL_TABLE("clients and upstreams", sockets);
