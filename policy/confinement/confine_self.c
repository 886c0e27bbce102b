/* The order of confinement. Some steps undo others when they come too early: changing ids clears the parent-death
   signal, so that comes after; dropping from the bounding set needs a capability, so that comes before; landlock needs
   no-new-privileges. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/confinement/filter.h"
#include "policy/confinement/steps.h"

static int filter_install(const struct step_context *context)
{
  int failed = filter_load(context->options->role, false);
  return failed < 0 ? step_failed(context->result, -failed, "the filter cannot be installed") : 0;
}

static int filter_check(const struct step_context *context)
{
  if (filter_verify(context->options->role) == 0)
    return 0;
  return step_unsafe(context->result, "the filter's canary did not answer");
}

static const struct step {
  enum confinement_step step;
  int (*apply)(const struct step_context *);
  int (*verify)(const struct step_context *);
} order[] = {
  {STEP_NAMESPACES, namespaces_check, NULL}, /* made by the parent: there is only the check */
  {STEP_ROOT, root_empty, root_verify},
  {STEP_LIMITS, limits_set, limits_verify},
  {STEP_BOUNDING, bounding_empty, bounding_verify},
  {STEP_GROUPS, groups_drop, groups_verify},
  {STEP_IDS, ids_change, ids_verify},
  {STEP_CAPABILITIES, capabilities_drop, capabilities_verify},
  {STEP_DUMPABLE, dumpable_clear, dumpable_verify},
  {STEP_PARENT_DEATH, parent_death_set, parent_death_verify},
  {STEP_NO_NEW_PRIVS, no_new_privs_set, no_new_privs_verify},
  {STEP_LANDLOCK, landlock_deny, landlock_verify},
  {STEP_MDWE, mdwe_set, mdwe_verify},
  {STEP_FILTER, filter_install, filter_check},
};

_Static_assert(sizeof order / sizeof *order == STEP_COUNT, "every step has its place");

static const struct {
  const char *name;
  bool needs_root;
} steps[STEP_COUNT] = {
#define X(symbol, name, root, does) [STEP_##symbol] = {name, root},
  CONFINEMENT_STEPS(X)
#undef X
};

const char *confinement_step_name(unsigned step)
{
  return step < STEP_COUNT ? steps[step].name : "unknown step";
}

bool confinement_step_needs_root(unsigned step)
{
  return step < STEP_COUNT && steps[step].needs_root;
}

int step_failed(struct confine_result *result, int error, const char *what)
{
  snprintf(result->what, sizeof result->what, "%s: %s", what, strerror(error));
  return -error;
}

int step_unsafe(struct confine_result *result, const char *what)
{
  snprintf(result->what, sizeof result->what, "not in force although the kernel said so: %s", what);
  return -EPERM;
}

/* Only what failed for want of root; a step that seemed to succeed and then did not hold is never waived. */
static bool may_waive(const struct confine_options *options, enum confinement_step step, int failed)
{
  return options->best_effort && confinement_step_needs_root(step) && (failed == -EPERM || failed == -EACCES);
}

static int take_step(const struct step_context *context, const struct step *step)
{
  struct confine_result *result = context->result;
  int outcome = step->apply(context);
  if (outcome == STEP_UNKNOWN_TO_KERNEL)
    return 0;
  if (outcome < 0 && may_waive(context->options, step->step, outcome)) {
    result->waived |= 1U << step->step;
    return 0;
  }
  if (outcome == 0 && step->verify)
    outcome = step->verify(context);
  if (outcome == 0)
    result->done |= 1U << step->step;
  else
    result->failed = step->step;
  return outcome;
}

int confine_self(const struct confine_options *options, struct confine_result *ret)
{
  *ret = (struct confine_result){0};
  const struct step_context context = {options, ret};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    int failed = take_step(&context, &order[i]);
    if (failed < 0)
      return failed;
  }
  ret->what[0] = '\0'; /* of steps that were waived */
  return 0;
}
