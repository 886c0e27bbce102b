#include "policy/config/walk.h"

#include <string.h>

#include "policy/config/nearest.h"
#include "shared/limits.h"

#define KEYS_TEXT_SIZE 320

unsigned walk_line(const struct walk *walk)
{
  return (unsigned)walk->event.start_mark.line + 1;
}

static void stop(struct walk *walk)
{
  yaml_event_delete(&walk->event);
  walk->event = (yaml_event_t){.type = YAML_NO_EVENT};
  walk->stopped = true;
}

/* libyaml's own words are about tokens; where they have a usual cause, it is named. */
static const char *syntax_hint(const yaml_parser_t *parser)
{
  static const struct {
    const char *part, *hint;
  } hints[] = {
    {"alias", ": quote an entry that begins with \"*\""},
    {"anchor", ": quote a value that begins with \"&\""},
    {"cannot start any token", ": no tabs in the indentation, and quotes around a value that begins with @ or `"},
    {"block", ": is it indented like its neighbours, and is an IPv6 address in quotes?"},
    {"flow", ": is each bracket closed, and is an IPv6 address in quotes?"},
  };
  for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
    if ((parser->context && strstr(parser->context, hints[i].part)) ||
        (parser->problem && strstr(parser->problem, hints[i].part)))
      return hints[i].hint;
  }
  return "";
}

static void report_syntax(struct walk *walk)
{
  if (walk->parser.error == YAML_MEMORY_ERROR)
    walk->report->out_of_memory = true;
  report_error(walk->report, walk->file, (unsigned)walk->parser.problem_mark.line + 1, "not valid YAML: %s%s%s%s",
               walk->parser.context ? walk->parser.context : "", walk->parser.context ? ", " : "",
               walk->parser.problem ? walk->parser.problem : "out of memory", syntax_hint(&walk->parser));
}

/* What YAML has and this file has not. */
static void check_plainness(struct walk *walk)
{
  const yaml_event_t *event = &walk->event;
  const yaml_char_t *anchor = NULL, *tag = NULL;
  if (event->type == YAML_SCALAR_EVENT) {
    anchor = event->data.scalar.anchor;
    tag = event->data.scalar.tag;
    if (strlen((const char *)event->data.scalar.value) != event->data.scalar.length)
      report_error(walk->report, walk->file, walk_line(walk), "a NUL character in a value");
  } else if (event->type == YAML_SEQUENCE_START_EVENT) {
    anchor = event->data.sequence_start.anchor;
    tag = event->data.sequence_start.tag;
  } else if (event->type == YAML_MAPPING_START_EVENT) {
    anchor = event->data.mapping_start.anchor;
    tag = event->data.mapping_start.tag;
  } else if (event->type == YAML_ALIAS_EVENT) {
    report_error(walk->report, walk->file, walk_line(walk),
                 "aliases are not accepted: write the value out, or quote an entry that begins with \"*\"");
  }
  if (anchor)
    report_error(walk->report, walk->file, walk_line(walk), "anchors are not accepted: write the value out");
  if (tag)
    report_error(walk->report, walk->file, walk_line(walk),
                 "tags are not accepted: quote a value that begins with \"!\"");
}

bool walk_advance(struct walk *walk)
{
  if (walk->stopped)
    return false;
  yaml_event_delete(&walk->event);
  if (!yaml_parser_parse(&walk->parser, &walk->event)) {
    report_syntax(walk);
    stop(walk);
    return false;
  }
  yaml_event_type_t type = walk->event.type;
  if (type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT)
    walk->depth++;
  else if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT)
    walk->depth--;
  if (walk->depth > CONFIG_DEPTH_MAX) {
    report_error(walk->report, walk->file, walk_line(walk), "nested more than %d deep", CONFIG_DEPTH_MAX);
    stop(walk);
    return false;
  }
  check_plainness(walk);
  return true;
}

void walk_skip(struct walk *walk)
{
  if (walk->event.type != YAML_MAPPING_START_EVENT && walk->event.type != YAML_SEQUENCE_START_EVENT)
    return;
  for (unsigned outside = walk->depth - 1; walk->depth > outside;) {
    if (!walk_advance(walk))
      return;
  }
}

static const char *key_name(const void *context, size_t index)
{
  const struct schema *schema = context;
  return index < schema->count ? schema->keys[index].name : NULL;
}

/* The keys that this version has, for whoever wrote another. */
static void list_keys(const struct schema *schema, char *ret, size_t size)
{
  size_t used = 0;
  for (size_t i = 0; i < schema->count && used < size; i++) {
    if (schema->keys[i].read != read_later)
      used += (size_t)snprintf(ret + used, size - used, "%s%s", used > 0 ? ", " : "", schema->keys[i].name);
  }
}

static void report_unknown(struct walk *walk, const struct schema *schema, const char *name)
{
  char known[KEYS_TEXT_SIZE] = "";
  const char *near = nearest_word(name, key_name, schema);
  if (near) {
    report_error(walk->report, walk->file, walk_line(walk), "unknown key \"%.100s\" in %s: did you mean \"%s\"?", name,
                 schema->what, near);
    return;
  }
  list_keys(schema, known, sizeof known);
  report_error(walk->report, walk->file, walk_line(walk), "unknown key \"%.100s\" in %s, which has %s%s%s", name,
               schema->what, known, schema->hint ? ": " : "", schema->hint ? schema->hint : "");
}

static void skip_pair(struct walk *walk)
{
  walk_skip(walk);
  if (walk_advance(walk))
    walk_skip(walk);
}

/* The row for the key that the walk stands on; NULL when there is none, or not again: reported. */
static const struct schema_key *match_key(struct walk *walk, const struct schema *schema, unsigned *seen)
{
  if (walk->event.type != YAML_SCALAR_EVENT) {
    if (walk->event.type != YAML_ALIAS_EVENT)
      report_error(walk->report, walk->file, walk_line(walk), "a key must be a word");
    return NULL;
  }
  const char *name = (const char *)walk->event.data.scalar.value;
  for (size_t i = 0; i < schema->count; i++) {
    if (strcmp(schema->keys[i].name, name) != 0)
      continue;
    if (seen[i] > 0) {
      report_error(walk->report, walk->file, walk_line(walk), "\"%s\" stands in line %u already", name, seen[i]);
      return NULL;
    }
    seen[i] = walk_line(walk);
    return &schema->keys[i];
  }
  report_unknown(walk, schema, name);
  return NULL;
}

void walk_mapping(struct walk *walk, const struct schema *schema, void *target)
{
  if (walk->event.type != YAML_MAPPING_START_EVENT) {
    if (walk->event.type != YAML_ALIAS_EVENT)
      report_error(walk->report, walk->file, walk_line(walk), "%s is written as KEY: VALUE pairs", schema->what);
    walk_skip(walk);
    return;
  }
  unsigned line = walk_line(walk);
  unsigned seen[SCHEMA_KEYS_MAX] = {0};
  while (walk_advance(walk) && walk->event.type != YAML_MAPPING_END_EVENT) {
    const struct schema_key *key = match_key(walk, schema, seen);
    if (!key)
      skip_pair(walk);
    else if (walk_advance(walk))
      key->read(walk, key, (char *)target + key->offset);
  }
  for (size_t i = 0; i < schema->count && !walk->stopped; i++) {
    if (schema->keys[i].required && seen[i] == 0)
      report_error(walk->report, walk->file, line, "%s needs \"%s\"", schema->what, schema->keys[i].name);
  }
}

void walk_list(struct walk *walk, const struct schema_key *key, value_reader *item, void *field)
{
  if (walk->event.type != YAML_SEQUENCE_START_EVENT) {
    if (walk->event.type != YAML_ALIAS_EVENT)
      report_error(walk->report, walk->file, walk_line(walk), "\"%s\" wants a list, as in [ one, other ]", key->name);
    walk_skip(walk);
    return;
  }
  unsigned line = walk_line(walk);
  size_t count = 0;
  while (walk_advance(walk) && walk->event.type != YAML_SEQUENCE_END_EVENT) {
    if (key->most > 0 && count == key->most) {
      report_error(walk->report, walk->file, walk_line(walk), "more than %u items in \"%s\"", (unsigned)key->most,
                   key->name);
      stop(walk);
      return;
    }
    count++;
    item(walk, key, field);
  }
  if (count < key->least && !walk->stopped)
    report_error(walk->report, walk->file, line, "\"%s\" is empty", key->name);
}

static bool at_document(struct walk *walk)
{
  if (!walk_advance(walk) || !walk_advance(walk)) /* the stream's start, then the document's or the stream's end */
    return false;
  if (walk->event.type == YAML_DOCUMENT_START_EVENT) {
    const yaml_event_t *event = &walk->event;
    if (event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
      report_error(walk->report, walk->file, walk_line(walk), "tags are not accepted");
    return walk_advance(walk);
  }
  report_error(walk->report, walk->file, 0, "the file is empty");
  return false;
}

void walk_document(struct walk *walk, const char *content, size_t length, const struct schema *root, void *target)
{
  if (!yaml_parser_initialize(&walk->parser)) {
    walk->report->out_of_memory = true;
    return;
  }
  yaml_parser_set_encoding(&walk->parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&walk->parser, (const unsigned char *)content, length);
  if (at_document(walk)) {
    walk_mapping(walk, root, target);
    /* The document's end, then the stream's. */
    if (walk_advance(walk) && walk_advance(walk) && walk->event.type != YAML_STREAM_END_EVENT)
      report_error(walk->report, walk->file, walk_line(walk), "a second document: the configuration is one");
  }
  yaml_event_delete(&walk->event);
  yaml_parser_delete(&walk->parser);
}
