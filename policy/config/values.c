#include <stdlib.h>
#include <string.h>

#include "policy/config/nearest.h"
#include "policy/config/walk.h"

static bool is_null(const yaml_event_t *event)
{
  static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
  for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
        strcmp((const char *)event->data.scalar.value, nulls[i]) == 0)
      return true;
  }
  return false;
}

const char *walk_scalar(struct walk *walk, const struct schema_key *key, const char *wanted)
{
  if (walk->event.type == YAML_ALIAS_EVENT)
    return NULL;
  if (walk->event.type == YAML_SCALAR_EVENT && !is_null(&walk->event))
    return (const char *)walk->event.data.scalar.value;
  const char *found = walk->event.type == YAML_SCALAR_EVENT ? "has no value"
                      : walk->event.type == YAML_SEQUENCE_START_EVENT
                        ? "has a list (quote a value that begins with \"[\")"
                        : "has KEY: VALUE pairs";
  report_error(walk->report, walk->file, walk_line(walk), "\"%s\" %s, and wants %s", key->name, found, wanted);
  walk_skip(walk);
  return NULL;
}

static void report_value(struct walk *walk, const struct schema_key *key, const char *value, const char *wanted)
{
  report_error(walk->report, walk->file, walk_line(walk), "\"%s\" is \"%.100s\", and wants %s", key->name, value,
               wanted);
}

static bool copy_text(struct walk *walk, const char *value, struct text *ret)
{
  ret->value = strdup(value);
  ret->line = walk_line(walk);
  if (!ret->value)
    walk->report->out_of_memory = true;
  return ret->value != NULL;
}

void read_text(struct walk *walk, const struct schema_key *key, void *field)
{
  const char *value = walk_scalar(walk, key, "text");
  if (value)
    copy_text(walk, value, field);
}

static void read_texts_item(struct walk *walk, const struct schema_key *key, void *field)
{
  struct texts *texts = field;
  const char *value = walk_scalar(walk, key, "text");
  if (!value)
    return;
  struct text *grown = reallocarray(texts->items, texts->count + 1, sizeof *grown);
  if (!grown) {
    walk->report->out_of_memory = true;
    return;
  }
  texts->items = grown;
  if (copy_text(walk, value, &grown[texts->count]))
    texts->count++;
}

void read_texts(struct walk *walk, const struct schema_key *key, void *field)
{
  walk_list(walk, key, read_texts_item, field);
}

void text_clear(struct text *text)
{
  free(text->value);
  *text = (struct text){0};
}

void texts_clear(struct texts *texts)
{
  for (size_t i = 0; i < texts->count; i++)
    text_clear(&texts->items[i]);
  free(texts->items);
  *texts = (struct texts){0};
}

static const char *choice_name(const void *context, size_t index)
{
  const struct choice *choices = context;
  return choices[index].name;
}

static void report_choice(struct walk *walk, const struct schema_key *key, const char *value)
{
  const struct choice *choices = key->detail;
  const char *near = nearest_word(value, choice_name, choices);
  if (near) {
    report_error(walk->report, walk->file, walk_line(walk), "\"%s\" is \"%.100s\": did you mean \"%s\"?", key->name,
                 value, near);
    return;
  }
  char known[128] = "";
  size_t used = 0;
  for (size_t i = 0; choices[i].name && used < sizeof known; i++)
    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? " or " : "", choices[i].name);
  report_value(walk, key, value, known);
}

void read_choice(struct walk *walk, const struct schema_key *key, void *field)
{
  const struct choice *choices = key->detail;
  const char *value = walk_scalar(walk, key, "one word");
  if (!value)
    return;
  for (unsigned i = 0; choices[i].name; i++) {
    if (strcmp(choices[i].name, value) != 0)
      continue;
    if (choices[i].later)
      report_error(walk->report, walk->file, walk_line(walk), "this version does not have \"%s: %s\" yet", key->name,
                   value);
    else
      *(unsigned *)field = i;
    return;
  }
  report_choice(walk, key, value);
}

static bool is_plain(const struct walk *walk)
{
  return walk->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

void read_flag(struct walk *walk, const struct schema_key *key, void *field)
{
  static const struct {
    const char *name;
    bool value;
  } words[] = {{"yes", true}, {"true", true}, {"no", false}, {"false", false}};
  const char *value = walk_scalar(walk, key, "yes or no");
  if (!value)
    return;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (is_plain(walk) && strcmp(words[i].name, value) == 0) {
      *(bool *)field = words[i].value;
      return;
    }
  }
  report_value(walk, key, value, "yes or no, without quotes");
}

struct unit {
  const char *name;
  uint32_t factor;
};

/* Plain decimal without sign or leading zero, then a unit of the table; the product within 32 bits. */
static bool parse_quantity(const char *value, const struct unit *units, size_t unit_count, uint32_t *ret)
{
  uint64_t number = 0;
  size_t digits = strspn(value, "0123456789");
  if (digits == 0 || digits > 10 || (digits > 1 && value[0] == '0'))
    return false;
  for (size_t i = 0; i < digits; i++)
    number = number * 10 + (uint64_t)(value[i] - '0');
  for (size_t i = 0; i < unit_count; i++) {
    if (strcmp(value + digits, units[i].name) == 0 && number <= UINT32_MAX / units[i].factor) {
      *ret = (uint32_t)number * units[i].factor;
      return true;
    }
  }
  return false;
}

static void read_quantity(struct walk *walk, const struct schema_key *key, const struct unit *units, size_t unit_count,
                          const char *wanted, uint32_t *field)
{
  const char *value = walk_scalar(walk, key, wanted);
  if (!value)
    return;
  uint32_t number;
  if (!is_plain(walk) || !parse_quantity(value, units, unit_count, &number)) {
    report_value(walk, key, value, wanted);
    return;
  }
  if (number < key->least || number > key->most) {
    /* Shown in the widest unit that holds both bounds whole. */
    const struct unit *shown = &units[0];
    for (size_t i = 0; i < unit_count; i++) {
      if (key->least % units[i].factor == 0 && key->most % units[i].factor == 0)
        shown = &units[i];
    }
    report_error(walk->report, walk->file, walk_line(walk), "\"%s\" is %s, and must be %u%s to %u%s", key->name, value,
                 (unsigned)(key->least / shown->factor), shown->name, (unsigned)(key->most / shown->factor),
                 shown->name);
    return;
  }
  *field = number;
}

void read_number(struct walk *walk, const struct schema_key *key, void *field)
{
  static const struct unit units[] = {{"", 1}};
  read_quantity(walk, key, units, 1, "a whole number, without quotes", field);
}

void read_duration(struct walk *walk, const struct schema_key *key, void *field)
{
  static const struct unit units[] = {{"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 60 * 60 * 1000}};
  read_quantity(walk, key, units, sizeof units / sizeof units[0],
                "a whole number with its unit: 250ms, 10s, 5m or 1h, without quotes", field);
}

void read_size(struct walk *walk, const struct schema_key *key, void *field)
{
  static const struct unit units[] = {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
  read_quantity(walk, key, units, sizeof units / sizeof units[0],
                "a whole number with its unit: 4096B, 256KiB, 64MiB or 1GiB, without quotes", field);
}

void read_mapping(struct walk *walk, const struct schema_key *key, void *field)
{
  walk_mapping(walk, key->detail, field);
}

void read_later(struct walk *walk, const struct schema_key *key, void *field)
{
  (void)field;
  report_error(walk->report, walk->file, walk_line(walk), "this version does not have \"%s\" yet: take it out",
               key->name);
  walk_skip(walk);
}
