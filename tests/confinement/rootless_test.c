/* Without root, and where namespaces are not to be had: what is done, what is waived, and that no more than that is. */
#include <criterion/criterion.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parent/spawn.h"
#include "tests/confinement/procfs.h"
#include "tests/confinement/stage.h"

#define BIT(step) (1U << STEP_##step)
#define NO_CAPABILITIES "0000000000000000"
#define NAMESPACE_FLAGS (CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

static void prepare(void)
{
  stage_prepare();
  (void)stage_probe_binary(ROLE_WORKER);
  (void)stage_probe_binary(ROLE_RESOLVER);
}

TestSuite(rootless, .init = prepare);

static bool become_unprivileged(size_t groups)
{
  static const gid_t some[] = {UNPRIVILEGED - 1};
  if (geteuid() != 0)
    return true;
  /* A process that an ordinary user starts is dumpable; a change of ids makes it not so, and its /proc files root's. */
  return setgroups(groups, some) == 0 && setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) == 0 &&
         setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static bool refuse_namespaces(void)
{
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  bool made = filter != NULL;
  for (unsigned bit = 0; made && bit < 32; bit++)
    if ((NAMESPACE_FLAGS | CLONE_NEWUSER) & 1U << bit)
      made = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, 1U << bit, 1U << bit)) == 0;
  made = made && seccomp_load(filter) == 0;
  seccomp_release(filter);
  return made;
}

static void check_steps(const struct probe *probe, uint32_t waived)
{
  const uint32_t kernel_dependent = BIT(LANDLOCK) | BIT(MDWE);
  uint32_t all = (1U << STEP_COUNT) - 1;
  COPY_CHECK(probe->ready.steps_waived == waived, "but %#x", probe->ready.steps_waived);
  COPY_CHECK((probe->ready.steps_done | kernel_dependent) == (all & ~waived), "but %#x", probe->ready.steps_done);
}

static void check_status(const struct probe *probe, const char *key, const char *value)
{
  COPY_CHECK(strcmp(procfs_status(probe->pid, key), value) == 0, "%s is %s", key, procfs_status(probe->pid, key));
}

static void check_tight(const struct probe *probe)
{
  check_status(probe, "Seccomp", "2");
  check_status(probe, "NoNewPrivs", "1");
  check_status(probe, "CapPrm", NO_CAPABILITIES);
  check_status(probe, "CapEff", NO_CAPABILITIES);
  check_status(probe, "CapInh", NO_CAPABILITIES);
  check_status(probe, "CapAmb", NO_CAPABILITIES);
}

static bool ends_well(struct probe *probe)
{
  int status = probe_stop(probe);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool without_groups(void)
{
  struct probe probe;
  COPY_REQUIRE(become_unprivileged(0));
  COPY_REQUIRE(probe_start(ROLE_WORKER, &probe) == 0);
  if (getgroups(0, NULL) == 0)
    check_steps(&probe, 0);
  check_tight(&probe);
  check_status(&probe, "CapBnd", NO_CAPABILITIES);
  return COPY_CHECK(ends_well(&probe));
}

Test(rootless, all_steps_without_supplementary_groups)
{
  stage_in_copy(without_groups);
}

static bool with_groups(void)
{
  struct probe probe;
  COPY_REQUIRE(become_unprivileged(1));
  COPY_REQUIRE(probe_start(ROLE_RESOLVER, &probe) == 0);
  if (getgroups(0, NULL) > 0)
    check_steps(&probe, BIT(GROUPS));
  check_tight(&probe);
  return COPY_CHECK(ends_well(&probe));
}

Test(rootless, supplementary_groups_cannot_be_dropped)
{
  stage_in_copy(with_groups);
}

/* A copy starts the probe, and root looks at it. */
static pid_t start_elsewhere(int order, int answer)
{
  pid_t starter = fork();
  if (starter != 0)
    return starter;
  struct probe probe;
  char byte;
  if (!become_unprivileged(0) || probe_start(ROLE_WORKER, &probe) < 0 ||
      write(answer, &probe.pid, sizeof probe.pid) < 0 || read(order, &byte, 1) != 1)
    _exit(1);
  _exit(ends_well(&probe) ? 0 : 1);
}

static void expect_own_mapping(pid_t pid, const char *map)
{
  unsigned inside, outside, count;
  cr_expect(sscanf(procfs_content(pid, map), "%u %u %u", &inside, &outside, &count) == 3 && inside == UNPRIVILEGED &&
              outside == UNPRIVILEGED && count == 1,
            "%s: %s", map, procfs_content(pid, map));
}

Test(rootless, user_is_mapped_to_itself_alone)
{
  if (geteuid() != 0)
    cr_skip("needs root to look");
  int orders[2], answers[2];
  cr_assert(pipe(orders) == 0 && pipe(answers) == 0);
  pid_t starter = start_elsewhere(orders[0], answers[1]);
  close(answers[1]);
  pid_t pid;
  cr_assert(read(answers[0], &pid, sizeof pid) == sizeof pid);
  expect_own_mapping(pid, "uid_map");
  expect_own_mapping(pid, "gid_map");
  cr_expect_str_eq(procfs_content(pid, "setgroups"), "deny\n");
  static const char *const names[] = {"ns/user", "ns/net", "ns/mnt", "ns/pid", "ns/ipc", "ns/uts"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char ours[64];
    snprintf(ours, sizeof ours, "%s", procfs_link(getpid(), names[i]));
    cr_expect_str_neq(procfs_link(pid, names[i]), ours, "%s", names[i]);
  }
  cr_expect_eq(procfs_entries(pid, "root"), 0);
  int status;
  cr_assert(write(orders[1], "", 1) == 1 && waitpid(starter, &status, 0) == starter);
  cr_expect_eq(status, 0);
}

static bool without_namespaces(void)
{
  struct probe probe;
  COPY_REQUIRE(become_unprivileged(0) && refuse_namespaces());
  COPY_REQUIRE(probe_start(ROLE_WORKER, &probe) == 0);
  /* The bounding set can only be changed with a capability, which a namespace would have given. */
  if (getgroups(0, NULL) == 0)
    check_steps(&probe, BIT(NAMESPACES) | BIT(ROOT) | BIT(BOUNDING));
  check_tight(&probe);
  return COPY_CHECK(ends_well(&probe));
}

Test(rootless, without_namespaces_the_rest_still_holds)
{
  stage_in_copy(without_namespaces);
}

static bool forbidden_calls_die(void)
{
  static const char *const some[] = {"socket", "connect", "execve", "mmap write and execute", "shutdown of a listener"};
  COPY_REQUIRE(become_unprivileged(0) && refuse_namespaces());
  for (size_t i = 0; i < attempts_count; i++)
    for (size_t j = 0; j < sizeof some / sizeof *some; j++) {
      if (strcmp(attempts[i].name, some[j]) != 0)
        continue;
      struct probe probe;
      bool returned = false;
      struct attempt_result result;
      COPY_REQUIRE(probe_start(ROLE_WORKER, &probe) == 0);
      int status = probe_try(&probe, i, &returned, &result);
      COPY_CHECK(!returned && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%s", some[j]);
    }
  return true;
}

Test(rootless, forbidden_calls_die_without_namespaces_too)
{
  stage_in_copy(forbidden_calls_die);
}

/* As root these tests do not start with best effort. */
static bool start_without_namespaces(void)
{
  struct probe probe;
  COPY_REQUIRE(refuse_namespaces());
  return COPY_CHECK(probe_start(ROLE_WORKER, &probe) == -EPERM);
}

Test(rootless, required_means_required)
{
  if (geteuid() != 0)
    cr_skip("needs root");
  stage_in_copy(start_without_namespaces);
}
