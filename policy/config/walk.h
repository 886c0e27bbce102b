/* A walk over libyaml's events, steered by tables: what keys a mapping has, and what each value must be. Each problem
   is reported where it stands, and the walk goes on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#include "policy/config/report.h"

struct walk {
  yaml_parser_t parser;
  yaml_event_t event; /* where the walk stands */
  const char *file;
  struct report_builder *report;
  void *draft; /* for the readers of the schema */
  unsigned depth;
  bool stopped; /* nothing more can be read */
};

struct schema_key;

/* Reads one value. On entry the walk stands on the value's first event, on return on its last. A value that is wrong is
   reported and leaves the field as it was. */
typedef void value_reader(struct walk *walk, const struct schema_key *key, void *field);

struct schema_key {
  const char *name;
  value_reader *read;
  size_t offset;      /* of the field in what the mapping fills */
  const void *detail; /* for the reader: choices, the schema of a mapping, the reader of an item */
  uint32_t least;     /* numbers, in the unit of the field; the number of items of a list */
  uint32_t most;
  bool required;
};

/* A row whose value goes into a member, and one whose reader gets the whole struct; further members may follow. */
#define KEY(key, reader, type, member, ...)                                    \
  {                                                                            \
    .name = key, .read = reader, .offset = offsetof(type, member), __VA_ARGS__ \
  }
#define WHOLE_KEY(key, reader, ...)          \
  {                                          \
    .name = key, .read = reader, __VA_ARGS__ \
  }

struct schema {
  const char *what; /* "a policy" */
  const struct schema_key *keys;
  size_t count;     /* at most SCHEMA_KEYS_MAX */
  const char *hint; /* for an unknown key that resembles none; may be NULL */
};

#define SCHEMA_KEYS_MAX 32

struct text {
  char *value; /* NULL: absent */
  unsigned line;
};

struct choice {
  const char *name; /* NULL ends the table */
  bool later;       /* known, but not in this version */
};

/* Walks the one document of `content` by the schema of its root. */
void walk_document(struct walk *walk, const char *content, size_t length, const struct schema *root, void *target);

/* For readers of their own. */
unsigned walk_line(const struct walk *walk);
bool walk_advance(struct walk *walk);
void walk_skip(struct walk *walk);
void walk_mapping(struct walk *walk, const struct schema *schema, void *target);

/* Calls `item` for each value of a list, with at most key->most of them. */
void walk_list(struct walk *walk, const struct schema_key *key, value_reader *item, void *field);

/* The text of a scalar that is not null, until the walk advances; else NULL, reported and skipped. `wanted` completes
   "NAME wants ...". */
const char *walk_scalar(struct walk *walk, const struct schema_key *key, const char *wanted);

/* Readers, by the type of the field. */
value_reader read_text;     /* struct text */
value_reader read_texts;    /* struct texts */
value_reader read_choice;   /* unsigned; detail: struct choice table */
value_reader read_flag;     /* bool: yes, no, true, false */
value_reader read_number;   /* uint32_t */
value_reader read_duration; /* uint32_t, milliseconds */
value_reader read_size;     /* uint32_t, bytes */
value_reader read_mapping;  /* detail: struct schema */
value_reader read_later;    /* a key that this version does not have */

struct texts {
  struct text *items;
  size_t count;
};

void text_clear(struct text *text);
void texts_clear(struct texts *texts);
