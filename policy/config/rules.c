#include "policy/config/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/config/source.h"
#include "shared/limits.h"

const char *rules_file_name(struct draft *draft, const char *name)
{
  struct config *config = draft->config;
  for (size_t i = 0; i < config->file_count; i++) {
    if (strcmp(config->files[i], name) == 0)
      return config->files[i];
  }
  char **grown = reallocarray(config->files, config->file_count + 1, sizeof *grown);
  if (grown) {
    config->files = grown;
    grown[config->file_count] = strdup(name);
  }
  if (!grown || !grown[config->file_count]) {
    draft->report->out_of_memory = true;
    return NULL;
  }
  return grown[config->file_count++];
}

static bool reserve(struct draft *draft, struct draft_rules *rules, const char *file, unsigned line)
{
  if (rules->count == LIST_FILE_ENTRIES_MAX) {
    if (!rules->full)
      report_error(draft->report, file, line, "more than %d entries", LIST_FILE_ENTRIES_MAX);
    rules->full = true;
    return false;
  }
  if (rules->count < rules->capacity)
    return true;
  size_t capacity = rules->capacity > 0 ? rules->capacity * 2 : 16;
  struct rule *grown = reallocarray(rules->rules, capacity, sizeof *grown);
  if (!grown) {
    draft->report->out_of_memory = true;
    return false;
  }
  rules->rules = grown;
  rules->capacity = capacity;
  return true;
}

/* `file` is a name that the configuration keeps. */
static void add_entry(struct draft *draft, struct draft_rules *rules, const char *text, size_t length, const char *file,
                      unsigned line)
{
  if (!reserve(draft, rules, file, line))
    return;
  struct rule *rule = &rules->rules[rules->count];
  struct entry_problem problem;
  int result = entry_parse(text, length, rules->kind, rule, &problem);
  if (result == -ENOMEM)
    draft->report->out_of_memory = true;
  else if (result < 0)
    report_error(draft->report, file, line, "entry \"%.*s\": %s", (int)(length < 80 ? length : 80), text, problem.text);
  if (result < 0)
    return;
  rule->file = file;
  rule->line = line;
  rules->count++;
}

/* The line without its comment: "#" at its start or behind a blank. */
static size_t entry_length(const char *line, size_t length)
{
  for (size_t i = 0; i < length; i++) {
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
      length = i;
  }
  while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t' || line[length - 1] == '\r'))
    length--;
  return length;
}

static void add_lines(struct draft *draft, struct draft_rules *rules, const char *content, size_t length,
                      const char *file)
{
  unsigned line = 0;
  for (const char *at = content, *end = content + length; at < end && !rules->full;) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t whole = stop ? (size_t)(stop - at) : (size_t)(end - at);
    size_t used = entry_length(at, whole);
    line++;
    if (strspn(at, " \t") < used)
      add_entry(draft, rules, at, used, file, line);
    at += whole + 1;
  }
}

/* Notes the file; false, reported, when it stands there already or there are too many. */
static bool note_list(struct draft *draft, struct draft_rules *rules, const char *file, const char *at_file,
                      unsigned at_line)
{
  for (size_t i = 0; i < rules->list_count; i++) {
    if (rules->lists[i] == file) {
      report_error(draft->report, at_file, at_line, "the list %s is named twice here", file);
      return false;
    }
  }
  if (rules->list_count == POLICY_LISTS_MAX) {
    report_error(draft->report, at_file, at_line, "more than %d lists", POLICY_LISTS_MAX);
    return false;
  }
  rules->lists[rules->list_count++] = file;
  return true;
}

static void add_list(struct walk *walk, struct draft_rules *rules, const struct text *list)
{
  struct draft *draft = walk->draft;
  char *path = source_resolve(walk->file, list->value);
  const char *file = path ? rules_file_name(draft, path) : NULL;
  free(path);
  if (!file) {
    draft->report->out_of_memory = true;
    return;
  }
  if (!note_list(draft, rules, file, walk->file, list->line))
    return;
  char *content;
  size_t length;
  int result = source_read(file, LIST_FILE_BYTES_MAX, draft->report, walk->file, list->line, &content, &length);
  if (result == -ENOMEM)
    draft->report->out_of_memory = true;
  if (result < 0)
    return;
  add_lines(draft, rules, content, length, file);
  free(content);
}

struct draft_entry {
  struct text host;
  struct text list;
  struct texts ports;
  struct texts resolves_to;
};

static const struct schema_key entry_keys[] = {
  KEY("host", read_text, struct draft_entry, host),
  KEY("ports", read_texts, struct draft_entry, ports, .least = 1, .most = ENTRY_ITEMS_MAX),
  KEY("resolves_to", read_texts, struct draft_entry, resolves_to, .least = 1, .most = ENTRY_ITEMS_MAX),
  KEY("list", read_text, struct draft_entry, list),
};
static const struct schema entry_schema = {"an entry", entry_keys, sizeof entry_keys / sizeof entry_keys[0],
                                           "in an entry that is text, a port stands right behind its colon (HOST:443)"};

/* Writes the mapping in the one-line form of entry.h, so that there is one parser and one text to show. */
static void add_mapping_entry(struct walk *walk, struct draft_rules *rules, const struct draft_entry *entry)
{
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (!stream) {
    walk->report->out_of_memory = true;
    return;
  }
  fputs(entry->host.value, stream);
  for (size_t i = 0; i < entry->ports.count; i++)
    fprintf(stream, "%c%s", i == 0 ? ':' : ',', entry->ports.items[i].value);
  for (size_t i = 0; i < entry->resolves_to.count; i++)
    fprintf(stream, "%s%s", i == 0 ? " -> " : ",", entry->resolves_to.items[i].value);
  if (fclose(stream) != 0)
    walk->report->out_of_memory = true;
  else
    add_entry(walk->draft, rules, text, size, walk->file, entry->host.line);
  free(text);
}

/* "host: x:443" beside ports, or an arrow inside: the one-line form in the wrong place. */
static bool host_is_plain(const struct draft_entry *entry)
{
  const char *host = entry->host.value;
  const char *bracket = strrchr(host, ']');
  const char *colon = strchr(bracket ? bracket : host, ':');
  bool bare_ipv6 = colon && !bracket && strchr(colon + 1, ':');
  return (!colon || bare_ipv6) && !strstr(host, "->");
}

static void finish_mapping(struct walk *walk, struct draft_rules *rules, const struct draft_entry *entry, unsigned line)
{
  bool has_more = entry->ports.count > 0 || entry->resolves_to.count > 0;
  if (entry->list.value && (entry->host.value || has_more))
    report_error(walk->report, walk->file, line, "\"list\" stands alone: its file has the hosts and ports");
  else if (entry->list.value)
    add_list(walk, rules, &entry->list);
  else if (!entry->host.value)
    report_error(walk->report, walk->file, line, "an entry needs \"host\" or \"list\"");
  else if (!host_is_plain(entry))
    report_error(walk->report, walk->file, entry->host.line,
                 "\"host\" is the host alone here: ports go into \"ports\", networks into \"resolves_to\"");
  else
    add_mapping_entry(walk, rules, entry);
}

void rules_read_entry(struct walk *walk, const struct schema_key *key, void *field)
{
  struct draft_rules *rules = field;
  if (walk->event.type != YAML_MAPPING_START_EVENT) {
    const char *text = walk_scalar(walk, key, "entries: HOST, HOST:PORT, { host: ... } or { list: FILE }");
    if (text)
      add_entry(walk->draft, rules, text, strlen(text), walk->file, walk_line(walk));
    return;
  }
  unsigned line = walk_line(walk);
  size_t errors = walk->report->report.errors;
  struct draft_entry entry = {0};
  walk_mapping(walk, &entry_schema, &entry);
  if (walk->report->report.errors == errors)
    finish_mapping(walk, rules, &entry, line);
  text_clear(&entry.host);
  text_clear(&entry.list);
  texts_clear(&entry.ports);
  texts_clear(&entry.resolves_to);
}
