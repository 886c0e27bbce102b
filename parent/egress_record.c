#include <stdio.h>

#include "parent/egress_ask.h"
#include "shared/clock.h"

static void client_fields(struct audit *audit, const struct client *client)
{
  audit_text(audit, "listener", client->listener->text);
  audit_endpoint(audit, "client", &client->peer);
  audit_text(audit, "identity", NULL); /* this version knows no identities */
}

static void rule_field(struct audit *audit, const struct rule *rule)
{
  if (!rule) {
    audit_text(audit, "rule", NULL);
    return;
  }
  char place[512];
  snprintf(place, sizeof place, "%s:%u", rule->file, rule->line);
  audit_text(audit, "rule", place);
}

void egress_record(const struct ask *ask)
{
  struct audit *audit = ask->egress->set.audit;
  bool granted = ask->reason == REASON_NONE;
  audit_line_begin(audit, AUDIT_GATE, granted ? "grant" : "refusal");
  audit_session(audit, ask->session);
  audit_number(audit, "worker", child_index(ask->worker));
  client_fields(audit, &ask->client);
  audit_text(audit, "host", ask->host.text);
  audit_number(audit, "port", ask->port);
  audit_text(audit, "verdict", granted ? "allow" : reason_row(ask->reason)->status == 403 ? "deny" : "fail");
  audit_text(audit, "reason", reason_row(ask->reason)->id);
  rule_field(audit, ask->rule);
  audit_text(audit, "policy", ask->client.listener->policy->name);
  audit_endpoint(audit, "address", &ask->upstream);
  if (ask->reason == REASON_BLOCKED_ADDRESS)
    audit_text(audit, "address_class", address_class_name(ask->address_class));
  audit_line_end(audit);
}

void egress_record_abandoned(const struct ask *ask)
{
  struct audit *audit = ask->egress->set.audit;
  audit_line_begin(audit, AUDIT_REPORT, "abandoned");
  audit_session(audit, ask->session);
  client_fields(audit, &ask->client);
  audit_text(audit, "host", ask->host.text);
  audit_number(audit, "port", ask->port);
  audit_text(audit, "reported_by", "worker");
  audit_line_end(audit);
}

void egress_record_end(struct egress *egress, const struct grant *grant, enum ending ending, uint64_t bytes_up,
                       uint64_t bytes_down)
{
  struct audit *audit = egress->set.audit;
  bool by_parent = ending == ENDING_WORKER_DIED;
  audit_line_begin(audit, AUDIT_REPORT, "end");
  audit_session(audit, grant->session);
  client_fields(audit, &grant->client);
  audit_text(audit, "host", grant->host);
  audit_number(audit, "port", grant->port);
  audit_endpoint(audit, "address", &grant->upstream);
  if (!by_parent) {
    audit_number(audit, "bytes_up", bytes_up);
    audit_number(audit, "bytes_down", bytes_down);
  }
  audit_number(audit, "duration_ms", clock_monotonic_ms() - grant->since_ms);
  audit_text(audit, "ending", ending_id(ending));
  audit_text(audit, "reported_by", by_parent ? "parent" : "worker");
  audit_line_end(audit);
}

void egress_record_worker_refused(struct egress *egress, const struct child *worker, const struct client *client,
                                  enum reason reason)
{
  struct audit *audit = egress->set.audit;
  audit_line_begin(audit, AUDIT_REPORT, "worker-refusal");
  audit_number(audit, "worker", child_index(worker));
  client_fields(audit, client);
  audit_text(audit, "verdict", "deny");
  audit_text(audit, "reason", reason_row(reason)->id);
  audit_text(audit, "reported_by", "worker");
  audit_line_end(audit);
}
