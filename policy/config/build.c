#include "policy/config/build.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/config/build_listener.h"
#include "policy/config/rule_checks.h"
#include "policy/config/source.h"
#include "shared/limits.h"

#define DEFAULT_USER "sallyport"
#define DEFAULT_AUDIT "/var/log/sallyport/audit.jsonl"
#define DEFAULT_HOSTS_FILE "/etc/hosts"
#define USER_NAME_MAX 31
#define ID_MAX 57
#define PORT_DNS 53

static char *steal_text(struct text *text, const char *otherwise, struct report_builder *report)
{
  char *value = text->value ? text->value : strdup(otherwise);
  text->value = NULL;
  if (!value)
    report->out_of_memory = true;
  return value;
}

static void build_user(struct draft *draft, const char *file)
{
  const char *name = draft->user.value;
  size_t length = name ? strlen(name) : 1;
  if (name && (length == 0 || length > USER_NAME_MAX || name[0] == '-' ||
               strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != length))
    report_error(draft->report, file, draft->user.line, "\"user\" is \"%.60s\", and wants the name of a user", name);
  if (name && strcmp(name, "root") == 0)
    report_error(draft->report, file, draft->user.line,
                 "\"user\" is root, and the children must not be: name a user of their own");
  draft->config->user_line = draft->user.line;
  draft->config->user = steal_text(&draft->user, DEFAULT_USER, draft->report);
}

static char *build_path(struct draft *draft, struct text *text, const char *key, const char *file)
{
  if (text->value[0] == '\0' || text->value[strlen(text->value) - 1] == '/')
    report_error(draft->report, file, text->line, "\"%s\" wants the path of a file", key);
  char *path = source_resolve(file, text->value);
  if (!path)
    draft->report->out_of_memory = true;
  return path;
}

static void build_audit(struct draft *draft, const char *file)
{
  draft->config->audit_line = draft->audit.line;
  draft->config->audit = draft->audit.value ? build_path(draft, &draft->audit, "audit", file)
                                            : steal_text(&draft->audit, DEFAULT_AUDIT, draft->report);
}

static void build_hosts_file(struct draft *draft, const char *file)
{
  struct text *text = &draft->hosts_file;
  if (!text->value) {
    draft->config->hosts_file = steal_text(text, DEFAULT_HOSTS_FILE, draft->report);
    return;
  }
  if (strcmp(text->value, "none") == 0)
    return;
  char *path = build_path(draft, text, "hosts_file", file);
  draft->config->hosts_file = path;
  char *content;
  size_t length;
  if (!path)
    return;
  int result = source_read(path, HOSTS_FILE_BYTES_MAX, draft->report, file, text->line, &content, &length);
  if (result == -ENOMEM)
    draft->report->out_of_memory = true;
  if (result == 0)
    free(content);
}

static bool parse_nameserver(const char *text, struct endpoint *ret)
{
  struct host host;
  uint16_t port;
  if (authority_parse(text, strlen(text), PORT_DNS, &host, &port) < 0 || host.kind != HOST_ADDRESS)
    return false;
  *ret = (struct endpoint){.address = host.address, .port = port};
  return true;
}

static void build_nameservers(struct draft *draft, const char *file)
{
  struct config *config = draft->config;
  config->nameservers_system = draft->nameservers.count == 0;
  if (config->nameservers_system)
    return;
  config->nameservers = calloc(draft->nameservers.count, sizeof *config->nameservers);
  if (!config->nameservers) {
    draft->report->out_of_memory = true;
    return;
  }
  for (size_t i = 0; i < draft->nameservers.count; i++) {
    const struct text *text = &draft->nameservers.items[i];
    if (parse_nameserver(text->value, &config->nameservers[i]))
      config->nameserver_count++;
    else
      report_error(draft->report, file, text->line,
                   "nameserver \"%.60s\": write \"ADDRESS:PORT\" with an IP address, IPv6 in brackets", text->value);
  }
}

static bool is_id(const char *name)
{
  size_t length = strlen(name);
  return length > 0 && length <= ID_MAX && name[0] != '-' && name[length - 1] != '-' &&
         strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static void check_policy_name(const struct draft *draft, size_t index, const char *file)
{
  const struct text *name = &draft->policies[index].name;
  if (!name->value)
    return;
  if (!is_id(name->value))
    report_error(draft->report, file, name->line,
                 "policy name \"%.80s\": lower-case letters, digits and \"-\" (at neither end), at most %d",
                 name->value, ID_MAX);
  for (size_t i = 0; i < index; i++) {
    const struct text *other = &draft->policies[i].name;
    if (other->value && strcmp(other->value, name->value) == 0) {
      report_error(draft->report, file, name->line, "a policy \"%.80s\" stands in line %u already", name->value,
                   other->line);
      return;
    }
  }
}

/* A line break at its end is YAML's way of writing long text, not part of the message. */
static void check_message(struct draft *draft, struct text *message, const char *file)
{
  if (!message->value)
    return;
  size_t length = strlen(message->value);
  if (length > 0 && message->value[length - 1] == '\n')
    message->value[--length] = '\0';
  if (length >= POLICY_MESSAGE_SIZE)
    report_error(draft->report, file, message->line, "\"message\" has %zu bytes, and may have %d", length,
                 POLICY_MESSAGE_SIZE - 1);
  for (size_t i = 0; i < length; i++) {
    if (iscntrl((unsigned char)message->value[i])) {
      report_error(draft->report, file, message->line, "\"message\" is one line without control characters");
      return;
    }
  }
}

static struct rule *move_rules(struct draft_rules *rules, size_t *ret_count)
{
  struct rule *moved = rules->rules;
  *ret_count = rules->count;
  rules->rules = NULL;
  rules->count = 0;
  return moved;
}

static void build_policy(struct draft *draft, struct draft_policy *written, struct policy *policy, const char *file)
{
  check_message(draft, &written->message, file);
  policy->mode = (enum policy_mode)written->mode;
  policy->name = steal_text(&written->name, "", draft->report);
  policy->message = steal_text(&written->message, "", draft->report);
  policy->allow = move_rules(&written->allow, &policy->allow_count);
  policy->deny = move_rules(&written->deny, &policy->deny_count);
  if (policy_index(policy) < 0)
    draft->report->out_of_memory = true;
  else
    rule_checks(policy, draft->report);
}

static void build_policies(struct draft *draft, const char *file)
{
  struct config *config = draft->config;
  for (size_t i = 0; i < draft->policy_count; i++)
    check_policy_name(draft, i, file);
  if (draft->policy_count == 0)
    return;
  config->policies = calloc(draft->policy_count, sizeof *config->policies);
  if (!config->policies) {
    draft->report->out_of_memory = true;
    return;
  }
  config->policy_count = draft->policy_count;
  for (size_t i = 0; i < draft->policy_count; i++)
    build_policy(draft, &draft->policies[i], &config->policies[i], file);
}

static void check_limits(const struct draft *draft, const char *file)
{
  const struct config_limits *limits = &draft->limits;
  if (limits->buffered_bytes > limits->buffered_total_bytes)
    report_error(draft->report, file, draft->limits_line,
                 "limits: buffered_bytes (one direction) is more than buffered_total_bytes");
  if (limits->keepalive_idle_ms >= limits->dead_peer_ms)
    report_error(
      draft->report, file, draft->limits_line,
      "limits: keepalive_idle must be shorter than dead_peer, or no probe is sent before the peer is given up");
}

void build_config(struct draft *draft, const char *file)
{
  struct config *config = draft->config;
  config->confinement = (enum confinement_mode)draft->confinement;
  config->log_json = draft->log == 1;
  config->log_level = draft->log_level;
  config->workers = draft->workers;
  config->limits = draft->limits;
  build_user(draft, file);
  build_audit(draft, file);
  build_hosts_file(draft, file);
  build_nameservers(draft, file);
  check_limits(draft, file);
  build_policies(draft, file);
  build_listeners(draft, file);
}
