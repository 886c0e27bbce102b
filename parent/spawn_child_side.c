#include "parent/spawn_child_side.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shared/limits.h"

#define SIGNALS 64 /* of the kernel's sets */

#define EXIT_CANNOT_EXECUTE 126

static void give_up(int report)
{
  int error = errno;
  /* A parent that is not there any more needs no report. */
  if (write(report, &error, sizeof error) < 0)
    _exit(EXIT_CANNOT_EXECUTE);
  _exit(EXIT_CANNOT_EXECUTE);
}

static bool wait_for_go(const struct child_side *side)
{
  /* Its own copy of the other end would keep the pipe from ending with the parent. */
  close(side->go_other_end);
  char byte;
  ssize_t size;
  do
    size = read(side->go, &byte, 1);
  while (size < 0 && errno == EINTR);
  if (size == 0)
    errno = EPIPE;
  return size == 1;
}

/* libevent's handlers write into a pipe of the parent's, and an ignored signal would stay ignored over exec. */
static void reset_signals(void)
{
  /* The kernel's own form, all zeroes for the default: libc's sigaction() refuses the signals that it keeps for its
     threads, and whoever started the parent may have ignored those too. */
  static const uint64_t standard[8];
  for (int number = 1; number <= SIGNALS; number++)
    (void)syscall(SYS_rt_sigaction, number, standard, NULL, SIGNALS / CHAR_BIT); /* KILL and STOP stay as they are */
}

/* Without root, exec would take from the process all that the user namespace has given it, but for ambient ones: those
   that the empty root and the bounding set need. */
static bool raise_capabilities(void)
{
  static const unsigned needed[] = {CAP_SYS_ADMIN, CAP_SETPCAP};
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, sets) < 0)
    return false;
  for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
    sets[i].inheritable = 0;
  for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++)
    sets[CAP_TO_INDEX(needed[i])].inheritable |= CAP_TO_MASK(needed[i]);
  if (syscall(SYS_capset, &header, sets) < 0)
    return false;
  for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++)
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, (unsigned long)needed[i], 0, 0) < 0)
      return false;
  return true;
}

/* First all of them up, out of the way of the numbers they are to have; then each to its number. *report moves too. */
static bool arrange_descriptors(const int *plan, int *report)
{
  int high[CHILD_LISTENER_FD_END];
  int moved = fcntl(*report, F_DUPFD_CLOEXEC, CHILD_LISTENER_FD_END);
  if (moved < 0)
    return false;
  *report = moved;
  for (int number = 0; number < CHILD_LISTENER_FD_END; number++) {
    high[number] = fcntl(plan[number], F_DUPFD_CLOEXEC, CHILD_LISTENER_FD_END);
    if (high[number] < 0)
      return false;
  }
  for (int number = 0; number < CHILD_LISTENER_FD_END; number++)
    if (dup2(high[number], number) < 0)
      return false;
  return close_range(CHILD_LISTENER_FD_END, UINT32_MAX, CLOSE_RANGE_CLOEXEC) == 0;
}

void child_side_run(const struct child_side *side)
{
  int report = side->report;
  reset_signals();
  if (!wait_for_go(side) || (side->raise_capabilities && !raise_capabilities()) ||
      !arrange_descriptors(side->plan, &report))
    give_up(report);
  /* No terminal, and none of its signals: who drains decides when children end. */
  (void)setsid();
  sigset_t none;
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, NULL);
  execve(side->binary, (char *const *)(uintptr_t)side->arguments, (char *const *)(uintptr_t)side->environment);
  give_up(report);
  __builtin_unreachable();
}
