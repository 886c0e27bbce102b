/* The resolver: DNS over sockets that the parent has connected to the nameservers. */
#include <sys/syscall.h>

#include "policy/confinement/calls.h"
#include "shared/limits.h"

static const struct call sockets[] = {
  CALL(writev, "questions; a connected socket takes no address with it"),
  CALL(pread64, "content of the hosts file, from the memfd that the parent sent"),
  CALL_IF(close,
          "sockets that have served; the fixed numbers stay occupied, or the next socket would get the channel's",
          SESSION_FD(0)),
  CALL(getrandom, "key of the hash table: names come from hostile hands"),
};

const struct call_table calls_resolver_sockets = CALL_TABLE("nameservers", sockets);
