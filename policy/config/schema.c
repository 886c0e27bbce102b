#include "policy/config/schema.h"

#include <string.h>

#include "policy/config/rules.h"
#include "shared/limits.h"
#include "shared/log.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define SECOND_MS 1000u
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define KIB 1024u
#define MIB (1024 * KIB)

static value_reader read_policy, read_listener, read_protocol, read_nameservers, read_authenticate, read_limits;

static void read_policies(struct walk *walk, const struct schema_key *key, void *field)
{
  walk_list(walk, key, read_policy, field);
}

static void read_listeners(struct walk *walk, const struct schema_key *key, void *field)
{
  walk_list(walk, key, read_listener, field);
}

static void read_protocols(struct walk *walk, const struct schema_key *key, void *field)
{
  walk_list(walk, key, read_protocol, field);
}

static void read_entries(struct walk *walk, const struct schema_key *key, void *field)
{
  walk_list(walk, key, rules_read_entry, field);
}

/* clang-format off */
static const struct choice confinement_choices[] = {{"required", false}, {"best-effort", false}, {NULL, false}};
static const struct choice log_choices[] = {{"text", false}, {"json", false}, {NULL, false}};
static const struct choice log_level_choices[] = {
  [LOG_LEVEL_DEBUG] = {"debug", false}, [LOG_LEVEL_INFO] = {"info", false},
  [LOG_LEVEL_WARNING] = {"warning", false}, [LOG_LEVEL_ERROR] = {"error", false}, {NULL, false}};
static const struct choice mode_choices[] = {{"enforce", false}, {"report", true}, {NULL, false}};
static const struct choice protocol_choices[] = {{"http", false}, {"socks5", true}, {NULL, false}};
static const struct choice authenticate_choices[] = {{"none", false}, {"required", true}, {NULL, false}};

static const struct schema_key resolver_keys[] = {
  KEY("nameservers", read_nameservers, struct draft, nameservers, .least = 1, .most = NAMESERVERS_MAX),
  KEY("hosts_file", read_text, struct draft, hosts_file),
};
static const struct schema resolver_schema = {"the resolver", resolver_keys, COUNT(resolver_keys), NULL};

static const struct schema_key policy_keys[] = {
  KEY("name", read_text, struct draft_policy, name, .required = true),
  KEY("mode", read_choice, struct draft_policy, mode, .detail = mode_choices),
  KEY("allow", read_entries, struct draft_policy, allow, .most = LIST_FILE_ENTRIES_MAX),
  KEY("deny", read_entries, struct draft_policy, deny, .most = LIST_FILE_ENTRIES_MAX),
  KEY("message", read_text, struct draft_policy, message),
  WHOLE_KEY("ssh_notice", read_later),
};
static const struct schema policy_schema = {"a policy", policy_keys, COUNT(policy_keys), NULL};

static const struct schema_key listener_keys[] = {
  KEY("listen", read_text, struct draft_listener, listen, .required = true),
  WHOLE_KEY("protocols", read_protocols, .detail = protocol_choices, .least = 1, .most = COUNT(protocol_choices)),
  WHOLE_KEY("authenticate", read_authenticate, .detail = authenticate_choices),
  KEY("open", read_flag, struct draft_listener, open),
  KEY("policy", read_text, struct draft_listener, policy, .required = true),
  WHOLE_KEY("mode", read_later),
  WHOLE_KEY("group", read_later),
  WHOLE_KEY("upstream_proxy", read_later),
  WHOLE_KEY("no_proxy", read_later),
  WHOLE_KEY("pin_address", read_later),
};
static const struct schema listener_schema = {"an egress listener", listener_keys, COUNT(listener_keys), NULL};

#define LIMIT(key, field, reader, low, high) KEY(key, reader, struct config_limits, field, .least = low, .most = high)
static const struct schema_key limit_keys[] = {
  LIMIT("head_timeout", head_timeout_ms, read_duration, 100, 5 * MINUTE_MS),
  LIMIT("dns_timeout", dns_timeout_ms, read_duration, 100, 1 * MINUTE_MS),
  LIMIT("dial_timeout", dial_timeout_ms, read_duration, 100, 5 * MINUTE_MS),
  LIMIT("tunnel_idle", tunnel_idle_ms, read_duration, 100, 168 * HOUR_MS),
  LIMIT("half_open_idle", half_open_idle_ms, read_duration, 100, 24 * HOUR_MS),
  LIMIT("keepalive_idle", keepalive_idle_ms, read_duration, SECOND_MS, 2 * HOUR_MS),
  LIMIT("dead_peer", dead_peer_ms, read_duration, SECOND_MS, 2 * HOUR_MS),
  LIMIT("connections_per_listener", connections_per_listener, read_number, 1, 1000000),
  LIMIT("buffered_bytes", buffered_bytes, read_size, 4 * KIB, 64 * MIB),
  LIMIT("buffered_total_bytes", buffered_total_bytes, read_size, 1 * MIB, 2048u * MIB),
  LIMIT("drain_timeout", drain_timeout_ms, read_duration, 0, 24 * HOUR_MS),
  LIMIT("audit_fsync", audit_fsync_ms, read_duration, 0, 1 * MINUTE_MS),
  LIMIT("dials_in_flight", dials_in_flight, read_number, 1, DIALS_IN_FLIGHT_MAX),
};
static const struct schema limits_schema = {"limits", limit_keys, COUNT(limit_keys), NULL};

static const struct schema_key root_keys[] = {
  KEY("user", read_text, struct draft, user),
  KEY("confinement", read_choice, struct draft, confinement, .detail = confinement_choices),
  KEY("audit", read_text, struct draft, audit),
  KEY("log", read_choice, struct draft, log, .detail = log_choices),
  KEY("log_level", read_choice, struct draft, log_level, .detail = log_level_choices),
  KEY("workers", read_number, struct draft, workers, .least = 1, .most = WORKERS_MAX),
  WHOLE_KEY("resolver", read_mapping, .detail = &resolver_schema),
  WHOLE_KEY("policies", read_policies, .most = POLICIES_MAX),
  WHOLE_KEY("egress", read_listeners, .most = LISTENERS_MAX),
  WHOLE_KEY("limits", read_limits),
  WHOLE_KEY("control", read_later),
  WHOLE_KEY("metrics", read_later),
  WHOLE_KEY("clients", read_later),
  WHOLE_KEY("ingress", read_later),
  WHOLE_KEY("sandboxes", read_later),
  WHOLE_KEY("error_pages", read_later),
};
const struct schema schema_root = {"the configuration", root_keys, COUNT(root_keys), NULL};

void schema_defaults(struct draft *draft)
{
  draft->log_level = LOG_LEVEL_INFO;
  draft->limits = (struct config_limits){
    .head_timeout_ms = 10 * SECOND_MS,
    .dns_timeout_ms = 5 * SECOND_MS,
    .dial_timeout_ms = 10 * SECOND_MS,
    .tunnel_idle_ms = 1 * HOUR_MS,
    .half_open_idle_ms = 5 * MINUTE_MS,
    .keepalive_idle_ms = 60 * SECOND_MS,
    .dead_peer_ms = 120 * SECOND_MS,
    .connections_per_listener = 16384,
    .buffered_bytes = 256 * KIB,
    .buffered_total_bytes = 64 * MIB,
    .drain_timeout_ms = 30 * SECOND_MS,
    .audit_fsync_ms = 100,
    .dials_in_flight = DIALS_IN_FLIGHT_MAX,
  };
}
/* clang-format on */

_Static_assert(COUNT(root_keys) <= SCHEMA_KEYS_MAX && COUNT(limit_keys) <= SCHEMA_KEYS_MAX, "walk_mapping's book");

/* One more zeroed element, or NULL. */
static void *grow(struct walk *walk, void *array, size_t count, size_t size, void *ret_array)
{
  char *grown = reallocarray(array, count + 1, size);
  if (!grown) {
    walk->report->out_of_memory = true;
    return NULL;
  }
  memcpy(ret_array, &grown, sizeof grown);
  return memset(grown + count * size, 0, size);
}

static void read_policy(struct walk *walk, const struct schema_key *key, void *field)
{
  (void)key;
  struct draft *draft = field;
  struct draft_policy *policy = grow(walk, draft->policies, draft->policy_count, sizeof *policy, &draft->policies);
  if (!policy)
    return walk_skip(walk);
  draft->policy_count++;
  policy->line = walk_line(walk);
  policy->allow.kind = ENTRY_ALLOW;
  policy->deny.kind = ENTRY_DENY;
  walk_mapping(walk, &policy_schema, policy);
}

static void read_listener(struct walk *walk, const struct schema_key *key, void *field)
{
  (void)key;
  struct draft *draft = field;
  struct draft_listener *listener =
    grow(walk, draft->listeners, draft->listener_count, sizeof *listener, &draft->listeners);
  if (!listener)
    return walk_skip(walk);
  draft->listener_count++;
  listener->line = walk_line(walk);
  walk_mapping(walk, &listener_schema, listener);
}

static void read_protocol(struct walk *walk, const struct schema_key *key, void *field)
{
  (void)field;
  unsigned protocol;
  read_choice(walk, key, &protocol);
}

static void read_authenticate(struct walk *walk, const struct schema_key *key, void *field)
{
  struct draft_listener *listener = field;
  listener->authenticate_written = true;
  read_choice(walk, key, &listener->authenticate);
}

static void read_limits(struct walk *walk, const struct schema_key *key, void *field)
{
  (void)key;
  struct draft *draft = field;
  draft->limits_line = walk_line(walk);
  walk_mapping(walk, &limits_schema, &draft->limits);
}

static void read_nameservers(struct walk *walk, const struct schema_key *key, void *field)
{
  if (walk->event.type != YAML_SCALAR_EVENT)
    return read_texts(walk, key, field);
  static const struct choice system_only[] = {{"system", false}, {NULL, false}};
  const struct schema_key as_choice = {.name = key->name, .detail = system_only};
  const char *value = walk_scalar(walk, key, "\"system\" or a list of addresses");
  unsigned chosen;
  if (value && strpbrk(value, ".:"))
    report_error(walk->report, walk->file, walk_line(walk), "\"%s\" wants a list, as in [ \"%.60s\" ]", key->name,
                 value);
  else if (value)
    read_choice(walk, &as_choice, &chosen);
}
