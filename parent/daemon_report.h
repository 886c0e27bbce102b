/* What the daemon tells about itself: in the log and the audit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parent/audit.h"
#include "parent/supervise.h"
#include "policy/config/config.h"

/* Reduces the parent itself (confine_parent) and says so. 0, or -EPERM after an error in the log. */
int daemon_report_confine(bool root);

/* Listening addresses, confinement in force and what was waived. */
void daemon_report_started(const struct config *config, struct audit *audit, const struct supervisor *supervisor,
                           unsigned workers);
void daemon_report_stopped(struct audit *audit, int exit_code);

/* One line "counters name=value ...". */
void daemon_report_counters(const struct supervisor *supervisor, size_t grants, size_t asks);
