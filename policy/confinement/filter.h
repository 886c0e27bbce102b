/* From a role's tables to its seccomp program. Private to policy/confinement and its tests. */
#pragma once

#include "policy/confinement/confine.h"

/* Builds the role's filter and installs it for this thread, or for all threads of the process. 0 or -errno. */
int filter_load(enum role role, bool all_threads);

/* Whether the role's filter is in force: seccomp mode 2, and the canary answers with the role's error number.
   0, or -EPERM. */
int filter_verify(enum role role);

/* What the canary call fails with: no error number of the kernel's, and another one for each role. */
int filter_canary_errno(enum role role);
