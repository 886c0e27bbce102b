/* The running parent: sets everything up in the order that confinement needs, turns the loop, ends in order. */
#pragma once

#include "policy/config/config.h"

/* Serves until told to stop. Owns nothing of `config`, which must outlive it. Returns the exit code. */
int daemon_run(const struct config *config, int ready_fd);
