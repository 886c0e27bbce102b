/* What every confined child may do, whatever its role.

   Not here, and why it matters:
   - sendto: with MSG_FASTOPEN it connects a TCP socket that is closed, to any address. Nor is write()'s cousin sendmsg,
     but on the channel and without that flag. Sockets are written with write and writev, which cannot name an address.
   - dup, dup2, dup3, fcntl: a copy of a listener under a high number would be out of reach of the checks by number.
   - mprotect, and mmap of anything but private anonymous memory: no new code, no files.
   - rt_sigaction, rt_sigreturn, kill, tgkill: no handlers, no signals. abort() therefore shows as SIGSYS. */
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "policy/confinement/calls.h"
#include "shared/limits.h"

/* Linux 6.11; glibc keeps the state of its own random numbers in it. */
#define MAP_DROPPABLE_ABI 0x08

static const struct call memory[] = {
  CALL(brk, "malloc grows and trims its heap"),
  CALL_IF(mmap, "malloc of large blocks; the kernel ignores the descriptor of anonymous memory",
          LONG_WITHIN(2, PROT_READ | PROT_WRITE), LONG_IS(3, MAP_PRIVATE | MAP_ANONYMOUS)),
  CALL_NONE_IF(mmap, "glibc 2.41 wants it for getrandom, and asks the kernel instead where it fails",
               LONG_WITHIN(2, PROT_READ | PROT_WRITE), LONG_IS(3, MAP_DROPPABLE_ABI | MAP_ANONYMOUS)),
  CALL(munmap, "free of large blocks"),
  CALL_IF(mremap, "realloc of large blocks", LONG_IS(3, MREMAP_MAYMOVE)),
};

static const struct call process[] = {
  CALL(exit_group, "the end"),
  CALL(restart_syscall, "the kernel's own, after a stop and continue in the middle of a wait"),
  CALL(clock_gettime, "deadlines and log lines, where the clock cannot be read without a call"),
  CALL(gettimeofday, "libevent's clock, likewise"),
  CALL_IF(futex, "pthread_once wakes those who wait for it; nobody does", INT_IS(1, FUTEX_WAKE_PRIVATE)),
  CALL_IF(prctl, "confine_self asks whether the filter is in force", INT_IS(0, PR_GET_SECCOMP)),
#ifdef __NR_epoll_wait
  CALL(epoll_wait, "the event loop"),
#endif
  CALL(epoll_pwait, "the event loop, where epoll_wait is made of it"),
  CALL(epoll_ctl, "the event loop"),
  CALL(read, "sockets, as far as they were handed over or accepted"),
  CALL(write, "sockets, and the log on descriptor 2"),
};

/* The flags are exactly those of shared/channel.c: above all not MSG_FASTOPEN, should the number ever be another
   socket's. */
static const struct call channel[] = {
  CALL_IF(sendmsg, "messages and descriptors to the parent", INT_IS(0, CHILD_CHANNEL_FD),
          INT_IS(2, MSG_NOSIGNAL | MSG_DONTWAIT)),
  CALL_IF(recvmsg, "messages and descriptors from the parent", INT_IS(0, CHILD_CHANNEL_FD),
          INT_IS(2, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)),
};

static const struct call absent[] = {
#ifdef __NR_epoll_pwait2
  CALL_NONE(epoll_pwait2, "libevent 2.2 tries it before epoll_wait"),
#endif
  CALL_NONE(sched_yield, "locks of newer libraries spin with it; they go on spinning"),
  CALL_NONE(sched_getaffinity, "malloc sizes its arenas by it; the default will do"),
  CALL_NONE(membarrier, "glibc and sanitizers probe for it; barriers are made otherwise"),
  CALL_NONE(madvise, "glibc advises on huge pages when it is tuned to; advice only"),
};

static const struct call canary[] = {
  {.number = SYS_acct,
   .treatment = CALL_CANARY,
   .reason = "fails with the role's own error number: this filter is in force"},
};

const struct call_table calls_child_memory = CALL_TABLE("memory", memory);
const struct call_table calls_child_process = CALL_TABLE("process and event loop", process);
const struct call_table calls_child_channel = CALL_TABLE("channel to the parent", channel);
const struct call_table calls_child_absent = CALL_TABLE("answered ENOSYS, and libraries do without", absent);
const struct call_table calls_canary = CALL_TABLE("canary", canary);

#ifdef SALLYPORT_SANITIZER
/* Only in builds for tests: the sanitizers' own memory, and their last words. */
static const struct call sanitizer[] = {
  CALL_IF(mmap, "shadow and allocator", LONG_WITHIN(2, PROT_READ | PROT_WRITE),
          LONG_WITHIN(3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED)),
  CALL_IF(mprotect, "guards around stacks and shadow", LONG_WITHIN(2, PROT_READ | PROT_WRITE)),
  CALL(futex, "locks of the allocator"),
  CALL(gettid, "report"),
  CALL(getpid, "report"),
  CALL(getrusage, "report"),
  CALL(sigaltstack, "handlers"),
  CALL(rt_sigaction, "handlers"),
  CALL(rt_sigprocmask, "report"),
  CALL(rt_sigreturn, "handlers"),
  CALL(tgkill, "abort"),
  CALL(getrandom, "report"),
  CALL(prctl, "names of threads and memory"),
  CALL_NONE(openat, "report: memory map"),
  CALL_NONE(readlinkat, "report: name of the binary"),
#ifdef __NR_readlink
  CALL_NONE(readlink, "report: name of the binary"),
#endif
#ifdef __NR_open
  CALL_NONE(open, "report: memory map"),
#endif
  CALL_NONE(ioctl, "report: is it a terminal"),
};

const struct call_table calls_sanitizer = CALL_TABLE("sanitizers", sanitizer);
#endif
