/* The parent's own look at a child that says it is confined: /proc does not take its word. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "policy/config/config.h"

/* Checks /proc/PID/status: seccomp filter mode, no new privileges, empty capability sets, the user, and that what was
   waived may be waived. NULL when all is as it must be, else a literal. */
const char *child_check(pid_t pid, uid_t uid, uint32_t waived, enum confinement_mode mode);
