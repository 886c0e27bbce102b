/* The steps of confinement, one pair of functions each: do it, then try what must now fail. Private to this folder.

   Each returns 0, -errno with a text in *what (which step_failed writes), or STEP_UNKNOWN_TO_KERNEL. */
#pragma once

#include "policy/confinement/confine.h"

#define STEP_UNKNOWN_TO_KERNEL 1

struct step_context {
  const struct confine_options *options;
  struct confine_result *result;
};

/* Writes "what: text of error" for people. Returns -error. */
int step_failed(struct confine_result *result, int error, const char *what);

/* Writes that a try succeeded which had to fail. Returns -EPERM. */
int step_unsafe(struct confine_result *result, const char *what);

int namespaces_check(const struct step_context *context);
int root_empty(const struct step_context *context);
int root_verify(const struct step_context *context);

int limits_set(const struct step_context *context);
int limits_verify(const struct step_context *context);
int bounding_empty(const struct step_context *context);
int bounding_verify(const struct step_context *context);
int groups_drop(const struct step_context *context);
int groups_verify(const struct step_context *context);
int ids_change(const struct step_context *context);
int ids_verify(const struct step_context *context);
int capabilities_drop(const struct step_context *context);
int capabilities_verify(const struct step_context *context);

int dumpable_clear(const struct step_context *context);
int dumpable_verify(const struct step_context *context);
int parent_death_set(const struct step_context *context);
int parent_death_verify(const struct step_context *context);
int no_new_privs_set(const struct step_context *context);
int no_new_privs_verify(const struct step_context *context);
int landlock_deny(const struct step_context *context);
int landlock_verify(const struct step_context *context);
int mdwe_set(const struct step_context *context);
int mdwe_verify(const struct step_context *context);
