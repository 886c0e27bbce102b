#include "parent/denial.h"

#include <jansson.h>
#include <string.h>

#include "policy/egress/decide.h"
#include "shared/text.h"

#define SHOWN_SIZE 512

static json_t *load(const char *line, size_t length)
{
  json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
  if (!json_is_object(object)) {
    json_decref(object);
    return NULL;
  }
  return object;
}

static const char *string_of(const json_t *object, const char *key)
{
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

static bool is_refusal(const json_t *object)
{
  const char *event = string_of(object, "event");
  return strcmp(event, "refusal") == 0 || strcmp(event, "worker-refusal") == 0;
}

bool denial_is_one(const char *line, size_t length)
{
  json_t *object = load(line, length);
  bool one = object && is_refusal(object);
  json_decref(object);
  return one;
}

/* An entry can permit only what no entry named: a deny rule or an address class needs a decision, not a line. */
static void entry_that_permits(const json_t *object, char *ret, size_t size)
{
  ret[0] = '\0';
  if (strcmp(string_of(object, "reason"), "blocked-by-allowlist") != 0 || *string_of(object, "rule"))
    return;
  json_int_t port = json_integer_value(json_object_get(object, "port"));
  struct host host;
  if (port < 1 || port > 65535 || host_parse_canonical(string_of(object, "host"), &host) < 0)
    return;
  decide_suggest(&host, (uint16_t)port, ret, size);
}

static const char *shown(const json_t *object, const char *key, char ret[SHOWN_SIZE])
{
  const char *value = string_of(object, key);
  text_printable(value, strlen(value), ret, SHOWN_SIZE);
  return ret;
}

static void print_why(const json_t *object, const char *entry, FILE *stream)
{
  char a[SHOWN_SIZE], b[SHOWN_SIZE];
  const char *reason = string_of(object, "reason");
  if (strcmp(reason, "blocked-by-allowlist") == 0 && *string_of(object, "rule"))
    fprintf(stream, "denied by the rule at %s of policy %s", shown(object, "rule", a), shown(object, "policy", b));
  else if (strcmp(reason, "blocked-by-allowlist") == 0)
    fprintf(stream, "no entry of policy %s allows it", shown(object, "policy", a));
  else if (strcmp(reason, "blocked-address") == 0 && *string_of(object, "address_class"))
    fprintf(stream, "its address is %s; policy %s opens no such address to it", shown(object, "address_class", a),
            shown(object, "policy", b));
  else
    fputs(shown(object, "reason", a), stream);
  if (*entry)
    fprintf(stream, "; would be permitted by: %s", entry);
  fputc('\n', stream);
}

static void print_text(const json_t *object, FILE *stream)
{
  char time[SHOWN_SIZE], client[SHOWN_SIZE], host[SHOWN_SIZE], entry[RULE_TEXT_SIZE];
  entry_that_permits(object, entry, sizeof entry);
  fprintf(stream, "%s  %s  ", shown(object, "time", time), shown(object, "client", client));
  if (*string_of(object, "host"))
    fprintf(stream, "%s:%d  ", shown(object, "host", host), (int)json_integer_value(json_object_get(object, "port")));
  print_why(object, entry, stream);
}

static void print_json(json_t *object, FILE *stream)
{
  char entry[RULE_TEXT_SIZE];
  entry_that_permits(object, entry, sizeof entry);
  json_object_set_new(object, "permitted_by", *entry ? json_string(entry) : json_null());
  json_dumpf(object, stream, JSON_COMPACT | JSON_ENSURE_ASCII);
  fputc('\n', stream);
}

bool denial_print(const char *line, size_t length, enum denial_format format, FILE *stream)
{
  json_t *object = load(line, length);
  bool one = object && is_refusal(object);
  if (one && format == DENIAL_JSON)
    print_json(object, stream);
  else if (one)
    print_text(object, stream);
  json_decref(object);
  return one;
}
