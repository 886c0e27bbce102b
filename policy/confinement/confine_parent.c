/* The parent gives up what its work does not need. What it keeps, its children have until they confine themselves. */
#include <errno.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include "policy/confinement/filter.h"
#include "policy/confinement/steps.h"

static const struct {
  cap_value_t capability;
  const char *reason;
} kept[] = {
  {CAP_SYS_ADMIN, "replacing a child: its namespaces, and its empty root"},
  {CAP_SETUID, "replacing a child: the unprivileged user"},
  {CAP_SETGID, "replacing a child: the unprivileged group, no supplementary ones"},
  {CAP_SETPCAP, "replacing a child: its bounding set, securebits"},
  {CAP_KILL, "ending a child: it is another user"},
};

#define KEPT_COUNT (sizeof kept / sizeof *kept)

static bool is_kept(cap_value_t capability)
{
  for (size_t i = 0; i < KEPT_COUNT; i++)
    if (kept[i].capability == capability)
      return true;
  return false;
}

static int reduce_bounding(const struct step_context *context)
{
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
    return step_failed(context->result, errno, "ambient set");
  for (cap_value_t capability = 0; prctl(PR_CAPBSET_READ, (unsigned long)capability, 0, 0, 0) >= 0; capability++) {
    if (is_kept(capability))
      continue;
    if (prctl(PR_CAPBSET_DROP, (unsigned long)capability, 0, 0, 0) < 0)
      return step_failed(context->result, errno, "bounding set");
    if (prctl(PR_CAPBSET_READ, (unsigned long)capability, 0, 0, 0) != 0)
      return step_unsafe(context->result, "the bounding set holds more than is needed");
  }
  return 0;
}

/* Those of the kept ones that are there: in a container some may be missing, and the child says which step failed. */
static int keep_needed(cap_t before, cap_t after)
{
  for (size_t i = 0; i < KEPT_COUNT; i++) {
    cap_flag_value_t there;
    cap_value_t capability = kept[i].capability;
    if (cap_get_flag(before, capability, CAP_PERMITTED, &there) < 0)
      return -errno;
    if (there != CAP_SET)
      continue;
    if (cap_set_flag(after, CAP_PERMITTED, 1, &capability, CAP_SET) < 0 ||
        cap_set_flag(after, CAP_EFFECTIVE, 1, &capability, CAP_SET) < 0)
      return -errno;
  }
  return 0;
}

static int reduce_capabilities(const struct step_context *context)
{
  cap_t before = cap_get_proc();
  cap_t after = cap_init();
  int failed = before && after ? keep_needed(before, after) : -ENOMEM;
  if (failed == 0 && cap_set_proc(after) < 0)
    failed = -errno;
  cap_t now = cap_get_proc();
  bool as_wanted = failed == 0 && now && cap_compare(now, after) == 0;
  cap_free(before);
  cap_free(after);
  cap_free(now);
  if (failed < 0)
    return step_failed(context->result, -failed, "capset");
  return as_wanted ? 0 : step_unsafe(context->result, "the parent has more capabilities than it needs");
}

/* All threads: the one that syncs the audit log started before. */
static int install_filter(const struct step_context *context)
{
  int failed = filter_load(ROLE_PARENT, true);
  if (failed < 0)
    return step_failed(context->result, -failed, "the filter cannot be installed");
  return filter_verify(ROLE_PARENT) == 0 ? 0 : step_unsafe(context->result, "the filter's canary did not answer");
}

static const struct parent_step {
  enum confinement_step step;
  bool root_only; /* an ordinary user has none of it */
  int (*apply)(const struct step_context *);
  int (*verify)(const struct step_context *);
} order[] = {
  {STEP_BOUNDING, true, reduce_bounding, NULL},
  {STEP_CAPABILITIES, true, reduce_capabilities, NULL},
  {STEP_NO_NEW_PRIVS, false, no_new_privs_set, no_new_privs_verify},
  {STEP_MDWE, false, mdwe_set, mdwe_verify},
  {STEP_FILTER, false, install_filter, NULL},
};

int confine_parent(bool root, struct confine_result *ret)
{
  *ret = (struct confine_result){0};
  const struct step_context context = {NULL, ret};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    if (order[i].root_only && !root)
      continue;
    int outcome = order[i].apply(&context);
    if (outcome == STEP_UNKNOWN_TO_KERNEL)
      continue;
    if (outcome == 0 && order[i].verify)
      outcome = order[i].verify(&context);
    if (outcome < 0) {
      ret->failed = order[i].step;
      return outcome;
    }
    ret->done |= 1U << order[i].step;
  }
  return 0;
}
