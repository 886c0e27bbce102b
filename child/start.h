/* The first thing that a child does: confine itself and report. Used by every child's main. */
#pragma once

#include "policy/confinement/confine.h"

/* Reads the confinement options that the parent left in the environment (SALLYPORT_CONFINE), confines this process as
   `role`, and sends READY over CHILD_CHANNEL_FD. Whatever the process's libraries must open or make (event base, pipes,
   resolver channels, time zone) must exist before. Does not return on failure: it logs and ends with exit code 4. */
void child_start(enum role role);
