/* Every class of forbidden call dies in every role, and what a role needs works. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/confinement/calls.h"
#include "policy/confinement/filter.h"
#include "tests/confinement/stage.h"

static const char *describe(int status, bool returned, const struct attempt_result *result, char text[96])
{
  if (returned)
    snprintf(text, 96, "it returned %lld, error %lld (%s)", (long long)result->value, (long long)result->error,
             strerror((int)result->error));
  else if (WIFSIGNALED(status))
    snprintf(text, 96, "signal %s", strsignal(WTERMSIG(status)));
  else
    snprintf(text, 96, "exit code %d", WEXITSTATUS(status));
  return text;
}

static bool as_expected(enum outcome outcome, enum role role, int status, bool returned,
                        const struct attempt_result *result)
{
  switch (outcome) {
  case DIES:
    return !returned && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
  case WORKS:
    return returned && result->value != -1;
  case PASSES:
    return returned && result->error != ENOSYS && result->error != filter_canary_errno(role);
  case ABSENT:
    return returned && result->error == ENOSYS;
  case CANARY:
    return returned && result->error == filter_canary_errno(role);
  default:
    return true;
  }
}

static const char *const outcome_names[] = {
  [DIES] = "death by SIGSYS",      [WORKS] = "success", [PASSES] = "to pass the filter", [ABSENT] = "ENOSYS",
  [CANARY] = "the canary's error",
};

static void expect(const struct attempt *attempt, enum role role, int status, bool returned,
                   const struct attempt_result *result)
{
  char text[96];
  enum outcome outcome = attempt->outcome[role];
  cr_expect(as_expected(outcome, role, status, returned, result), "%s: %s: expected %s, and %s", role_name(role),
            attempt->name, outcome_names[outcome], describe(status, returned, result, text));
}

/* What only builds with a sanitizer allow is not tried in them. */
static bool sanitizers_own(const struct attempt *attempt)
{
#ifdef SALLYPORT_SANITIZER
  for (size_t i = 0; i < calls_sanitizer.count; i++)
    if (calls_sanitizer.calls[i].number == attempt->number)
      return true;
#else
  (void)attempt;
#endif
  return false;
}

static void try_all(enum role role)
{
  stage_prepare();
  for (size_t i = 0; i < attempts_count; i++) {
    struct probe probe;
    if (attempts[i].outcome[role] == SKIP || sanitizers_own(&attempts[i]))
      continue;
    int failed = probe_start(role, &probe);
    cr_assert(failed == 0, "%s: the probe did not start: %s", role_name(role), strerror(-failed));
    bool returned = false;
    struct attempt_result result = {0};
    int status = probe_try(&probe, i, &returned, &result);
    expect(&attempts[i], role, status, returned, &result);
  }
}

Test(attempts, worker)
{
  try_all(ROLE_WORKER);
}

Test(attempts, resolver)
{
  try_all(ROLE_RESOLVER);
}

/* The parent confines a copy of this process, which makes the call. */
static int run_as_parent(const struct attempt *attempt, bool *ret_returned, struct attempt_result *ret)
{
  int ends[2];
  cr_assert(pipe(ends) == 0);
  pid_t pid = fork();
  if (pid == 0) {
    struct scene scene;
    struct confine_result confined;
    if (scene_prepare(&scene) < 0 || confine_parent(geteuid() == 0, &confined) < 0)
      _exit(1);
    struct attempt_result result = attempt_run(attempt, &scene);
    _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  close(ends[1]);
  *ret_returned = read(ends[0], ret, sizeof *ret) == sizeof *ret;
  close(ends[0]);
  int status;
  cr_assert(waitpid(pid, &status, 0) == pid);
  return status;
}

Test(attempts, parent)
{
  for (size_t i = 0; i < attempts_count; i++) {
    bool returned = false;
    struct attempt_result result = {0};
    if (attempts[i].outcome[ROLE_PARENT] == SKIP)
      continue;
    int status = run_as_parent(&attempts[i], &returned, &result);
    expect(&attempts[i], ROLE_PARENT, status, returned, &result);
  }
}
