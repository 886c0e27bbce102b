/* The parent. A filter passes through exec and stays in force beside a child's own, so it is a superset of all that
   children ever do: the dynamic loader, their confinement, and their work. The tables are kept apart by who needs them.

   What it can never do: write code into its memory, trace or read other processes, load modules or another kernel,
   io_uring, bpf, perf events, keys, userfaultfd, set clocks. Threads: audit_sync has its own before the filter, and
   none is made after it. */
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "policy/confinement/calls.h"

static const struct call loop[] = {
#ifdef __NR_epoll_wait
  CALL(epoll_wait, "the event loop"),
#endif
  CALL(epoll_pwait, "the event loop"),
  CALL(epoll_ctl, "the event loop"),
#ifdef __NR_poll
  CALL(poll, "waiting for one descriptor"),
#endif
  CALL(ppoll, "waiting for one descriptor"),
  CALL(read, "files, and signals by way of libevent's pipe"),
  CALL(write, "audit, log, readiness"),
  CALL(readv, "files"),
  CALL(writev, "audit, and glibc's last words"),
  CALL(close, "everything"),
  CALL(clock_gettime, "deadlines and time stamps"),
  CALL(gettimeofday, "libevent's clock"),
  CALL(clock_nanosleep, "back-off of libraries"),
  CALL(futex, "the thread that syncs the audit log"),
  CALL(restart_syscall, "the kernel's own, after a stop and continue"),
  CALL(rt_sigaction, "signals; reset in a child before exec"),
  CALL(rt_sigprocmask, "no signal between clone and exec"),
  CALL(rt_sigreturn, "return from libevent's handler"),
  CALL(exit, "end of a thread"),
  CALL(exit_group, "the end"),
  CALL(getrandom, "keys of hash tables"),
};

static const struct call network[] = {
  CALL_IF(socket, "dials and nameservers", INT_IS(0, AF_INET)),
  CALL_IF(socket, "dials and nameservers", INT_IS(0, AF_INET6)),
  CALL_IF(socket, "notification of the service manager", INT_IS(0, AF_UNIX)),
  CALL_IF(socket, "own addresses are never a destination: the kernel is asked for the interfaces",
          INT_IS(0, AF_NETLINK), INT_IS(2, NETLINK_ROUTE)),
  CALL_IF(socketpair, "channels to children", INT_IS(0, AF_UNIX)),
  CALL(connect, "dials: the parent's alone"),
  CALL(bind, "netlink, and listeners"),
  CALL(listen, "listeners"),
  CALL(shutdown, "listeners, at the end"),
  CALL(getsockname, "which listener a client came through"),
  CALL(getpeername, "who the client is"),
  CALL(getsockopt, "result of a dial, who a Unix client is"),
  CALL(setsockopt, "options of dialled sockets, buffers of channels"),
  CALL(sendto, "netlink request, notification"),
  CALL(sendmsg, "messages and descriptors to children"),
  CALL(recvmsg, "messages and descriptors from children"),
  CALL(recvfrom, "netlink"),
};

static const struct call files[] = {
  CALL(openat, "hosts file, lists, audit log when it came back, /proc of a child"),
#ifdef __NR_open
  CALL(open, "as openat, from older libraries"),
#endif
  CALL(fstat, "sizes"),
  CALL(flock, "one daemon per audit log, also when it is opened anew"),
  CALL(newfstatat, "sizes; glibc makes fstat of it"),
#ifdef __NR_stat
  CALL(stat, "is a file there"),
#endif
  CALL(statx, "glibc makes stat of it on some machines"),
  CALL(faccessat, "is a file there"),
  CALL(faccessat2, "is a file there"),
#ifdef __NR_access
  CALL(access, "is a file there"),
#endif
#ifdef __NR_readlink
  CALL(readlink, "own path"),
#endif
  CALL(readlinkat, "own path"),
  CALL(lseek, "files"),
  CALL(pread64, "files"),
  CALL(pwrite64, "files"),
  CALL(fsync, "audit"),
  CALL(fdatasync, "audit"),
  CALL(ftruncate, "a half-written audit line is taken back; size of shared pages"),
  CALL(fallocate, "audit"),
  CALL(getdents64, "folders of lists"),
  CALL(fcntl, "flags, seals, pipe sizes, copies of descriptors"),
  CALL(flock, "one parent per audit log"),
  CALL(memfd_create, "shared pages, content of the hosts file"),
  CALL(ioctl, "stdio asks whether its stream is a terminal"),
};

/* The children's own filters say on which descriptors and with which flags. */
static const struct call children[] = {
  CALL_IF(accept4, "clients of the workers", INT_IS(3, SOCK_NONBLOCK | SOCK_CLOEXEC)),
  CALL_IF(splice, "bulk in the workers", INT_WITHIN(5, SPLICE_F_MOVE | SPLICE_F_NONBLOCK)),
};

/* Namespaces of a child that root starts, and of one that an ordinary user starts. */
#define CHILD_NAMESPACES (CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

static const struct call spawn[] = {
  CALL_IF(clone, "a child in namespaces of its own", LONG_IS(0, CHILD_NAMESPACES | SIGCHLD)),
  CALL_IF(clone, "the same without root", LONG_IS(0, CHILD_NAMESPACES | CLONE_NEWUSER | SIGCHLD)),
  CALL_IF(clone, "a child where namespaces are not to be had; the try that no further process can be made",
          LONG_IS(0, SIGCHLD)),
  CALL(execve, "the child's binary"),
  CALL(wait4, "how a child ended"),
  CALL(waitid, "how a child ended"),
  CALL(kill, "children that broke a rule, and the end"),
  CALL(setsid, "a child has no terminal"),
  CALL(pipe2, "whether exec succeeded; pipes for bulk in the worker"),
#ifdef __NR_pipe
  CALL(pipe, "as pipe2"),
#endif
  CALL(dup, "descriptors to their fixed numbers"),
#ifdef __NR_dup2
  CALL(dup2, "descriptors to their fixed numbers"),
#endif
  CALL(dup3, "descriptors to their fixed numbers"),
  CALL(close_range, "nothing else reaches the child"),
};

/* W^X by system call: memory may be executable, but never while it is writable, and what is mapped executable is a
   file. That memory that was written cannot become executable is for memory-deny-write-execute. */
static const struct call loader[] = {
  CALL(brk, "malloc"),
  CALL_IF(mmap, "memory, files and shared pages", LONG_WITHIN(2, PROT_READ | PROT_WRITE)),
  CALL_IF(mmap, "code of libraries: from files", LONG_IS(2, PROT_READ | PROT_EXEC),
          LONG_WITHIN(3, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE)),
  CALL_IF(mprotect, "relocations become read-only", LONG_WITHIN(2, PROT_READ | PROT_WRITE)),
  CALL_IF(mprotect, "a child tries that memory that was written does not become executable",
          LONG_IS(2, PROT_READ | PROT_EXEC)),
#ifdef __aarch64__
  CALL_IF(mprotect, "the loader marks code that has branch targets (PROT_BTI)",
          LONG_IS(2, PROT_READ | PROT_EXEC | 0x10)),
#endif
  CALL(munmap, "memory, files"),
  CALL(mremap, "realloc of large blocks"),
  CALL(madvise, "malloc"),
#ifdef __NR_arch_prctl
  CALL(arch_prctl, "thread-local storage"),
#endif
  CALL(set_tid_address, "start of a process"),
  CALL(set_robust_list, "start of a process"),
  CALL(rseq, "start of a process"),
};

static const struct call libraries[] = {
  CALL(epoll_create1, "libevent"),
  CALL(eventfd2, "libevent"),
  CALL(timerfd_create, "libevent"),
  CALL(timerfd_settime, "libevent"),
  CALL(clock_getres, "libevent"),
  CALL(uname, "c-ares, libc"),
  CALL(sysinfo, "qsort sizes its buffer by it"),
  CALL(sched_getaffinity, "number of cores"),
  CALL(sched_yield, "locks"),
  CALL(getpid, "libraries that seed something"),
  CALL(gettid, "abort"),
  CALL(tgkill, "abort"),
  CALL(getppid, "libraries that seed something"),
  CALL(getuid, "is the process privileged"),
  CALL(geteuid, "is the process privileged"),
  CALL(getgid, "is the process privileged"),
  CALL(getegid, "is the process privileged"),
  CALL(getcwd, "relative paths in the configuration"),
  CALL(sigaltstack, "start of a process"),
#ifdef SALLYPORT_SANITIZER
  CALL(getrusage, "report"),
#endif
};

static const struct call confinement[] = {
  CALL(mount, "private tree and empty root of a child"),
  CALL(pivot_root, "empty root of a child"),
  CALL(umount2, "old root of a child"),
  CALL(chdir, "into the empty root"),
  CALL(mkdirat, "the try that the root is read-only"),
#ifdef __NR_mkdir
  CALL(mkdir, "the try that the root is read-only"),
#endif
  CALL(prlimit64, "resource limits"),
#ifdef __NR_getrlimit
  CALL(getrlimit, "resource limits"),
#endif
#ifdef __NR_setrlimit
  CALL(setrlimit, "resource limits"),
#endif
  CALL(prctl, "bounding set, securebits, dumpable, parent death, no new privileges, write-execute"),
  CALL(capget, "what capabilities are left"),
  CALL(capset, "capabilities are emptied; raised for exec without root"),
  CALL(setgroups, "no supplementary groups"),
  CALL(getgroups, "no supplementary groups"),
  CALL(setresgid, "the unprivileged user's group"),
  CALL(getresgid, "the unprivileged user's group"),
  CALL(setresuid, "the unprivileged user"),
  CALL(getresuid, "the unprivileged user"),
  CALL(landlock_create_ruleset, "landlock"),
  CALL(landlock_restrict_self, "landlock"),
  CALL(seccomp, "the child's own filter"),
};

static const struct call absent[] = {
  CALL_NONE(clone3, "its flags are behind a pointer; glibc falls back to clone"),
#ifdef __NR_epoll_pwait2
  CALL_NONE(epoll_pwait2, "libevent 2.2 tries it before epoll_wait"),
#endif
  CALL_NONE(openat2, "its flags are behind a pointer; callers fall back to openat"),
  CALL_NONE(membarrier, "glibc probes for it; barriers are made otherwise"),
#ifdef __NR_mseal
  CALL_NONE(mseal, "newer loaders try it"),
#else
  {.number = 462, .treatment = CALL_ABSENT, .reason = "mseal: newer loaders try it"},
#endif
};

const struct call_table calls_parent_loop = CALL_TABLE("event loop and process", loop);
const struct call_table calls_parent_network = CALL_TABLE("network", network);
const struct call_table calls_parent_files = CALL_TABLE("files", files);
const struct call_table calls_parent_spawn = CALL_TABLE("starting and ending children", spawn);
const struct call_table calls_parent_children = CALL_TABLE("work of children", children);
const struct call_table calls_parent_loader = CALL_TABLE("memory and dynamic loader", loader);
const struct call_table calls_parent_libraries = CALL_TABLE("libraries, as they start in children", libraries);
const struct call_table calls_parent_confinement = CALL_TABLE("confinement of children", confinement);
const struct call_table calls_parent_absent = CALL_TABLE("answered ENOSYS, and libraries do without", absent);
