/* The reduced parent: what it keeps, and that it still starts every role, which then does its work behind both filters.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/confinement/filter.h"
#include "tests/confinement/procfs.h"
#include "tests/confinement/stage.h"

/* SETGID, SETUID, SETPCAP, SYS_ADMIN, KILL */
#define KEPT "00000000002001e0"

#define NOTHING "0000000000000000"

static void prepare(void)
{
  stage_prepare();
  (void)stage_probe_binary(ROLE_WORKER);
  (void)stage_probe_binary(ROLE_RESOLVER);
}

TestSuite(parent, .init = prepare);

static bool confined(void)
{
  struct confine_result result;
  return COPY_CHECK(confine_parent(geteuid() == 0, &result) == 0, "%s", result.what);
}

static void check_status(const char *key, const char *value)
{
  COPY_CHECK(strcmp(procfs_status(getpid(), key), value) == 0, "%s is %s", key, procfs_status(getpid(), key));
}

static bool status_is_reduced(void)
{
  bool root = geteuid() == 0;
  COPY_REQUIRE(confined());
  /* Neither exec nor a change of ids gives back what was given up. */
  if (root)
    COPY_REQUIRE(setresuid(0, 0, 0) == 0);
  check_status("Seccomp", "2");
  check_status("NoNewPrivs", "1");
  check_status("CapInh", NOTHING);
  check_status("CapAmb", NOTHING);
  check_status("CapPrm", root ? KEPT : NOTHING);
  check_status("CapEff", root ? KEPT : NOTHING);
  if (root)
    check_status("CapBnd", KEPT);
  return true;
}

Test(parent, keeps_what_replacing_children_needs)
{
  stage_in_copy(status_is_reduced);
}

#define KEPT_WITHOUT_KILL "00000000002001c0"

/* In a container some may be missing from the start. */
static bool reduced_from_less(void)
{
  cap_value_t missing = CAP_KILL;
  cap_t now = cap_get_proc();
  COPY_REQUIRE(now && cap_set_flag(now, CAP_PERMITTED, 1, &missing, CAP_CLEAR) == 0);
  COPY_REQUIRE(cap_set_flag(now, CAP_EFFECTIVE, 1, &missing, CAP_CLEAR) == 0 && cap_set_proc(now) == 0);
  cap_free(now);
  COPY_REQUIRE(confined());
  check_status("CapEff", KEPT_WITHOUT_KILL);
  return true;
}

Test(parent, keeps_no_more_than_there_was)
{
  if (geteuid() != 0)
    cr_skip("needs root");
  stage_in_copy(reduced_from_less);
}

static bool start_each_role(void)
{
  COPY_REQUIRE(confined());
  for (unsigned role = ROLE_WORKER; role <= ROLE_RESOLVER; role++) {
    struct probe probe;
    COPY_REQUIRE(probe_start(role, &probe) == 0);
    COPY_CHECK(strcmp(procfs_status(probe.pid, "Seccomp_filters"), "2") == 0);
    if (geteuid() == 0)
      COPY_CHECK(probe.ready.steps_waived == 0, "but %#x", probe.ready.steps_waived);
    int status = probe_stop(&probe);
    COPY_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
  }
  return true;
}

Test(parent, starts_every_role)
{
  stage_in_copy(start_each_role);
}

static void work_in(enum role role, size_t attempt)
{
  struct probe probe;
  enum outcome outcome = attempts[attempt].outcome[role];
  if (outcome == DIES || outcome == SKIP || !COPY_CHECK(probe_start(role, &probe) == 0))
    return;
  bool returned = false;
  struct attempt_result result = {0};
  (void)probe_try(&probe, attempt, &returned, &result);
  bool fine = returned && (outcome != WORKS || result.value != -1) &&
              (outcome != CANARY || result.error == filter_canary_errno(role));
  COPY_CHECK(fine, "%s: %s: returned: %d, error %d", role_name(role), attempts[attempt].name, returned,
             (int)result.error);
}

static bool work_in_each_role(void)
{
  COPY_REQUIRE(confined());
  for (unsigned role = ROLE_WORKER; role <= ROLE_RESOLVER; role++)
    for (size_t i = 0; i < attempts_count; i++)
      work_in(role, i);
  return true;
}

Test(parent, lets_every_role_work)
{
  stage_in_copy(work_in_each_role);
}

/* The thread that syncs the audit log is older than the filter. */
static void *forbidden_call(void *barrier)
{
  pthread_barrier_wait(barrier); /* it is there */
  pthread_barrier_wait(barrier); /* the process is confined */
  return (void *)syscall(SYS_bpf, 0, NULL, 0);
}

Test(parent, filter_holds_for_older_threads)
{
  pid_t pid = fork();
  if (pid == 0) {
    pthread_t thread;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, forbidden_call, &barrier) != 0)
      _exit(1);
    pthread_barrier_wait(&barrier);
    if (!confined())
      _exit(1);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    _exit(0);
  }
  int status;
  cr_assert(waitpid(pid, &status, 0) == pid);
  cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status %#x", status);
}
