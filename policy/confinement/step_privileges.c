/* Limits, capabilities and ids. */
#include <errno.h>
#include <grp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/confinement/steps.h"
#include "shared/limits.h"

/* A capability by uid 0, by a change of ids, kept over one, or ambient: none of these, and no way back. */
#define SECUREBITS                                                                                 \
  (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | \
   SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

static const struct limit {
  __rlimit_resource_t resource;
  rlim_t value; /* RLIM_INFINITY: the descriptors of the options */
  const char *failure;
} limits[] = {
  {RLIMIT_CORE, 0, "core files"},
  {RLIMIT_NPROC, 0, "processes"},
  {RLIMIT_NOFILE, RLIM_INFINITY, "descriptors"},
  {RLIMIT_MEMLOCK, 0, "locked memory"},
  {RLIMIT_MSGQUEUE, 0, "message queues"},
#ifndef SALLYPORT_SANITIZER /* shadow memory is larger than any sensible limit */
  {RLIMIT_DATA, CHILD_MEMORY_BYTES_MAX, "memory"},
#endif
};

static rlim_t limit_value(const struct limit *limit, const struct step_context *context)
{
  return limit->value == RLIM_INFINITY ? context->options->descriptors : limit->value;
}

int limits_set(const struct step_context *context)
{
  /* Beyond it the filter could not tell sessions from listeners. */
  if (context->options->descriptors > CHILD_DESCRIPTORS_MAX)
    return step_failed(context->result, EINVAL, "more descriptors than the filter knows");
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    rlim_t value = limit_value(&limits[i], context);
    struct rlimit both = {value, value};
    if (setrlimit(limits[i].resource, &both) < 0)
      return step_failed(context->result, errno, limits[i].failure);
  }
  return 0;
}

/* That no process can be made is tried in capabilities_verify: until then some of them outweigh the limit. */
int limits_verify(const struct step_context *context)
{
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    struct rlimit now;
    rlim_t value = limit_value(&limits[i], context);
    if (getrlimit(limits[i].resource, &now) < 0 || now.rlim_cur != value || now.rlim_max != value)
      return step_unsafe(context->result, limits[i].failure);
  }
#ifndef SALLYPORT_SANITIZER
  void *block = mmap(NULL, CHILD_MEMORY_BYTES_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block != MAP_FAILED)
    return step_unsafe(context->result, "memory without bound");
#endif
  return 0;
}

int bounding_empty(const struct step_context *context)
{
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
    return step_failed(context->result, errno, "ambient set");
  for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
      return step_failed(context->result, errno, "bounding set");
  if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) < 0)
    return step_failed(context->result, errno, "securebits");
  return 0;
}

int bounding_verify(const struct step_context *context)
{
  if (prctl(PR_CAPBSET_READ, 0UL, 0, 0, 0) < 0)
    return step_unsafe(context->result, "the bounding set cannot be read");
  for (unsigned long capability = 0;; capability++) {
    int bounded = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (bounded < 0)
      break;
    if (bounded > 0)
      return step_unsafe(context->result, "a capability is left in the bounding set");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) > 0 ||
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0)
      return step_unsafe(context->result, "a capability is ambient");
  }
  if (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != SECUREBITS || prctl(PR_SET_SECUREBITS, 0UL, 0, 0, 0) == 0)
    return step_unsafe(context->result, "securebits");
  return 0;
}

int groups_drop(const struct step_context *context)
{
  /* Without root it is forbidden, even where there are none. */
  if (getgroups(0, NULL) == 0 || setgroups(0, NULL) == 0)
    return 0;
  return step_failed(context->result, errno, "setgroups");
}

int groups_verify(const struct step_context *context)
{
  return getgroups(0, NULL) == 0 ? 0 : step_unsafe(context->result, "supplementary groups are left");
}

int ids_change(const struct step_context *context)
{
  const struct confine_options *options = context->options;
  if (options->uid == 0 || options->gid == 0)
    return step_failed(context->result, EINVAL, "the user or group to become is root");
  if (setresgid(options->gid, options->gid, options->gid) < 0)
    return step_failed(context->result, errno, "setresgid");
  if (setresuid(options->uid, options->uid, options->uid) < 0)
    return step_failed(context->result, errno, "setresuid");
  return 0;
}

/* That there is no way back is tried in capabilities_verify: until then there is one. */
int ids_verify(const struct step_context *context)
{
  const struct confine_options *options = context->options;
  uid_t real, effective, saved;
  if (getresuid(&real, &effective, &saved) < 0 || real != options->uid || effective != options->uid ||
      saved != options->uid)
    return step_unsafe(context->result, "the user is another");
  gid_t real_group, effective_group, saved_group;
  if (getresgid(&real_group, &effective_group, &saved_group) < 0 || real_group != options->gid ||
      effective_group != options->gid || saved_group != options->gid)
    return step_unsafe(context->result, "the group is another");
  return 0;
}

int capabilities_drop(const struct step_context *context)
{
  cap_t none = cap_init();
  if (!none)
    return step_failed(context->result, ENOMEM, "capability set");
  int failed = cap_set_proc(none) < 0 ? errno : 0;
  cap_free(none);
  return failed ? step_failed(context->result, failed, "capset") : 0;
}

static bool capabilities_left(void)
{
  cap_t now = cap_get_proc();
  cap_t none = cap_init();
  bool left = !now || !none || cap_compare(now, none) != 0;
  cap_free(now);
  cap_free(none);
  return left;
}

static bool process_can_be_made(void)
{
  long child = syscall(SYS_clone, (unsigned long)SIGCHLD, NULL, NULL, NULL, 0UL);
  if (child == 0)
    _exit(0);
  if (child > 0)
    (void)waitpid((pid_t)child, NULL, 0);
  return child > 0;
}

int capabilities_verify(const struct step_context *context)
{
  if (capabilities_left())
    return step_unsafe(context->result, "capabilities are left");
  if (prctl(PR_CAPBSET_DROP, 0UL, 0, 0, 0) == 0)
    return step_unsafe(context->result, "the bounding set can be changed");
  if (!(context->result->done & 1U << STEP_IDS))
    return 0; /* as uid 0 the rest holds only by the filter */
  if (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0)
    return step_unsafe(context->result, "there is a way back to root");
  if (setgroups(0, NULL) == 0)
    return step_unsafe(context->result, "groups can be changed");
  if (process_can_be_made())
    return step_unsafe(context->result, "a process can be made");
  return 0;
}
