/* What the kernel says of a child that says it is confined. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/limits.h"
#include "tests/confinement/procfs.h"
#include "tests/confinement/stage.h"

#define NO_CAPABILITIES "0000000000000000"
#define NO_SIGNALS "0000000000000000"

static struct probe running(enum role role)
{
  stage_prepare();
  struct probe probe;
  cr_assert(probe_start(role, &probe) == 0);
  return probe;
}

static void end(struct probe *probe)
{
  int status = probe_stop(probe);
  cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the probe ended with status %#x", status);
}

#define EXPECT_STATUS(pid, key, value) cr_expect_str_eq(procfs_status(pid, key), value, key)

static void expect_status(enum role role)
{
  struct probe probe = running(role);
  EXPECT_STATUS(probe.pid, "Seccomp", "2");
  EXPECT_STATUS(probe.pid, "Seccomp_filters", "1");
  EXPECT_STATUS(probe.pid, "NoNewPrivs", "1");
  EXPECT_STATUS(probe.pid, "CapInh", NO_CAPABILITIES);
  EXPECT_STATUS(probe.pid, "CapPrm", NO_CAPABILITIES);
  EXPECT_STATUS(probe.pid, "CapEff", NO_CAPABILITIES);
  EXPECT_STATUS(probe.pid, "CapBnd", NO_CAPABILITIES);
  EXPECT_STATUS(probe.pid, "CapAmb", NO_CAPABILITIES);
  EXPECT_STATUS(probe.pid, "SigBlk", NO_SIGNALS);
  EXPECT_STATUS(probe.pid, "SigIgn", NO_SIGNALS);
  EXPECT_STATUS(probe.pid, "Threads", "1");
  unsigned uid = geteuid() == 0 ? UNPRIVILEGED : geteuid();
  char ids[64];
  snprintf(ids, sizeof ids, "%u\t%u\t%u\t%u", uid, uid, uid, uid);
  EXPECT_STATUS(probe.pid, "Uid", ids);
  if (geteuid() == 0) {
    EXPECT_STATUS(probe.pid, "Gid", ids);
    EXPECT_STATUS(probe.pid, "Groups", "");
  }
  end(&probe);
}

Test(proc, status_of_a_worker)
{
  expect_status(ROLE_WORKER);
}

Test(proc, status_of_a_resolver)
{
  expect_status(ROLE_RESOLVER);
}

/* The rest of /proc belongs to root once a process is not dumpable. */
static bool root_only(void)
{
  if (geteuid() != 0)
    cr_skip("needs root");
  return true;
}

Test(proc, namespaces_are_its_own)
{
  static const char *const names[] = {"ns/net", "ns/mnt", "ns/pid", "ns/ipc", "ns/uts"};
  root_only();
  struct probe probe = running(ROLE_WORKER);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char ours[64];
    snprintf(ours, sizeof ours, "%s", procfs_link(getpid(), names[i]));
    cr_expect_str_neq(procfs_link(probe.pid, names[i]), ours, "%s", names[i]);
    cr_expect_str_not_empty(procfs_link(probe.pid, names[i]));
  }
  /* No user namespace: peer credentials would be those of another world. */
  char ours[64];
  snprintf(ours, sizeof ours, "%s", procfs_link(getpid(), "ns/user"));
  cr_expect_str_eq(procfs_link(probe.pid, "ns/user"), ours);
  cr_expect_str_eq(procfs_status(probe.pid, "NSpid") + strcspn(procfs_status(probe.pid, "NSpid"), "\t"), "\t1");
  end(&probe);
}

Test(proc, root_is_empty_and_read_only)
{
  root_only();
  struct probe probe = running(ROLE_WORKER);
  cr_expect_eq(procfs_entries(probe.pid, "root"), 0);
  cr_expect_eq(procfs_entries(probe.pid, "cwd"), 0);
  const char *mounts = procfs_content(probe.pid, "mountinfo");
  cr_expect(strstr(mounts, " / / ro,nosuid,nodev,noexec"), "%s", mounts);
  cr_expect_eq(strchr(mounts, '\n'), strrchr(mounts, '\n'), "one mount only: %s", mounts);
  end(&probe);
}

static void expect_limit(pid_t pid, const char *name, const char *value)
{
  const char *limits = procfs_content(pid, "limits");
  const char *line = strstr(limits, name);
  char expected[64];
  cr_assert(line, "%s", name);
  snprintf(expected, sizeof expected, "%-21s%-21s", value, value);
  cr_expect(strncmp(line + 26, expected, 42) == 0, "%s: %.70s", name, line);
}

Test(proc, limits)
{
  root_only();
  struct probe probe = running(ROLE_RESOLVER);
  expect_limit(probe.pid, "Max core file size", "0");
  expect_limit(probe.pid, "Max processes", "0");
  expect_limit(probe.pid, "Max open files", "1024");
  expect_limit(probe.pid, "Max locked memory", "0");
  expect_limit(probe.pid, "Max msgqueue size", "0");
#ifndef SALLYPORT_SANITIZER
  expect_limit(probe.pid, "Max data size", "4294967296");
#endif
  end(&probe);
}

/* Every number below the sessions' is taken, and above them is only what the probe itself opened. */
static void expect_descriptors(enum role role)
{
  root_only();
  struct probe probe = running(role);
  for (int number = 0; number < CHILD_LISTENER_FD_END; number++) {
    char name[32], nothing[] = "/dev/null";
    snprintf(name, sizeof name, "fd/%d", number);
    const char *target = procfs_link(probe.pid, name);
    bool channel = number == CHILD_CHANNEL_FD;
    bool counters = role == ROLE_WORKER && number == CHILD_COUNTERS_FD;
    bool listener = role == ROLE_WORKER && number == CHILD_LISTENER_FD_FIRST;
    if (number == STDERR_FILENO)
      continue;
    else if (channel || listener)
      cr_expect(strncmp(target, "socket:", 7) == 0, "%d is %s", number, target);
    else if (counters)
      cr_expect(strncmp(target, "/memfd:counters", 15) == 0, "%d is %s", number, target);
    else
      cr_expect_str_eq(target, nothing, "%d is %s", number, target);
  }
  enum { PROBES_OWN = 3 }; /* epoll, two ends of a pipe */
  cr_expect_eq(procfs_entries(probe.pid, "fd"), CHILD_LISTENER_FD_END + PROBES_OWN);
  end(&probe);
}

Test(proc, descriptors_of_a_worker)
{
  expect_descriptors(ROLE_WORKER);
}

Test(proc, descriptors_of_a_resolver)
{
  expect_descriptors(ROLE_RESOLVER);
}

#define LEAK "fd/256" /* 4 * CHILD_LISTENER_FD_END */

Test(proc, nothing_is_inherited_but_what_was_handed_over)
{
  root_only();
  cr_assert(setenv("SECRET", "of the parent", 1) == 0);
  int leak = open("/etc/passwd", O_RDONLY);
  cr_assert(fcntl(leak, F_DUPFD, 4 * CHILD_LISTENER_FD_END) >= 0);
  struct probe probe = running(ROLE_WORKER);
  const char *environment = procfs_content(probe.pid, "environ");
  cr_expect(strncmp(environment,
                    "SALLYPORT_CONFINE=best-effort=0 namespaced=1 uid=65534 gid=65534 descriptors=1024\n"
                    "TZ=UTC0\n",
                    90) == 0,
            "%s", environment);
  cr_expect(!strstr(environment, "SECRET"));
  cr_expect_str_empty(procfs_link(probe.pid, LEAK), "a descriptor has come along");
  cr_expect_str_eq(procfs_content(probe.pid, "cmdline"), "sallyport: egress worker 0\n");
  end(&probe);
}

Test(proc, session_of_its_own)
{
  struct probe probe = running(ROLE_WORKER);
  cr_expect_eq(getsid(probe.pid), probe.pid);
  end(&probe);
}

Test(proc, all_steps_are_done)
{
  root_only();
  struct probe probe = running(ROLE_WORKER);
  cr_expect_eq(probe.ready.steps_waived, 0);
  for (unsigned step = 0; step < STEP_COUNT; step++)
    if (step != STEP_LANDLOCK && step != STEP_MDWE) /* where the kernel has them */
      cr_expect(probe.ready.steps_done & 1U << step, "%s", confinement_step_name(step));
  end(&probe);
}
