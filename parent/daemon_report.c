#include "parent/daemon_report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/confinement/confine.h"
#include "shared/log.h"

int daemon_report_confine(bool root)
{
  struct confine_result result = {0};
  if (confine_parent(root, &result) == 0)
    return 0;
  log_error("confinement of the parent failed at \"%s\": %s", confinement_step_name(result.failed), result.what);
  return -EPERM;
}

static void list_steps(uint32_t steps, char *ret, size_t size)
{
  size_t used = 0;
  ret[0] = '\0';
  for (unsigned step = 0; step < STEP_COUNT && used < size; step++)
    if (steps & 1U << step)
      used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? ", " : "", confinement_step_name(step));
}

void daemon_report_started(const struct config *config, struct audit *audit, const struct supervisor *supervisor,
                           unsigned workers)
{
  uint32_t waived = supervisor_waived(supervisor);
  char in_force[512], missing[512];
  list_steps(supervisor_done(supervisor), in_force, sizeof in_force);
  list_steps(waived, missing, sizeof missing);
  log_info("confinement in force: %s", in_force);
  if (waived)
    log_warning("confinement NOT in force (needs root): %s", missing);
  for (size_t i = 0; i < config->egress_count; i++)
    log_info("egress on %s, policy \"%s\", %u workers", config->egress[i].text, config->egress[i].policy->name,
             workers);

  audit_line_begin(audit, AUDIT_REPORT, "start");
  audit_text(audit, "version", SALLYPORT_VERSION);
  audit_text(audit, "configuration", config->path);
  audit_text(audit, "confinement", in_force);
  audit_text(audit, "waived", missing);
  audit_line_end(audit);
}

void daemon_report_stopped(struct audit *audit, int exit_code)
{
  audit_line_begin(audit, AUDIT_REPORT, "stop");
  audit_number(audit, "exit_code", (uint64_t)exit_code);
  audit_line_end(audit);
}

void daemon_report_counters(const struct supervisor *supervisor, size_t grants, size_t asks)
{
  char line[1000];
  size_t used = (size_t)snprintf(line, sizeof line, "counters grants_open=%zu asks_open=%zu", grants, asks);
  for (unsigned counter = 0; counter < COUNTER_COUNT && used < sizeof line; counter++)
    used += (size_t)snprintf(line + used, sizeof line - used, " %s=%llu", counter_id(counter),
                             (unsigned long long)supervisor_counter(supervisor, counter));
  log_info("%s", line);
}
