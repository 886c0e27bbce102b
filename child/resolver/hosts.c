#include "child/resolver/hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "child/resolver/name_table.h"
#include "policy/egress/host.h"

/* A name takes two bytes at least, with its separator; below that the table only gets longer chains. */
#define BYTES_PER_NAME 16

struct host_address {
  struct host_address *next;
  struct address address;
};

struct host_name {
  struct name_node node;
  struct host_name *next; /* of all names, for the end */
  struct host_address *addresses;
  size_t count;
  char name[];
};

struct hosts {
  struct name_table table;
  struct host_name *names;
};

static bool is_blank(char c)
{
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/* Cuts the next word off a line; false when there is none. */
static bool next_word(const char **at, const char *end, const char **ret_word, size_t *ret_length)
{
  while (*at < end && is_blank(**at))
    (*at)++;
  const char *word = *at;
  while (*at < end && !is_blank(**at))
    (*at)++;
  *ret_word = word;
  *ret_length = (size_t)(*at - word);
  return *ret_length > 0;
}

static struct host_name *name_make(struct hosts *hosts, const char *name)
{
  struct name_node *found = name_table_find(&hosts->table, name);
  if (found)
    return (struct host_name *)found;
  size_t size = strlen(name) + 1;
  struct host_name *made = calloc(1, sizeof *made + size);
  if (!made)
    return NULL;
  memcpy(made->name, name, size);
  made->node.name = made->name;
  made->next = hosts->names;
  hosts->names = made;
  name_table_insert(&hosts->table, &made->node);
  return made;
}

static int name_add(struct host_name *name, const struct address *address)
{
  struct host_address **end = &name->addresses;
  for (; *end; end = &(*end)->next)
    if (address_equal(&(*end)->address, address))
      return 0;
  if (name->count == LOOKUP_ADDRESSES_MAX)
    return 0;
  *end = calloc(1, sizeof **end);
  if (!*end)
    return -ENOMEM;
  (*end)->address = *address;
  name->count++;
  return 0;
}

static int parse_line(struct hosts *hosts, const char *line, const char *end)
{
  const char *comment = memchr(line, '#', (size_t)(end - line));
  if (comment)
    end = comment;
  const char *word;
  size_t length;
  char text[ADDRESS_TEXT_SIZE];
  if (!next_word(&line, end, &word, &length) || length >= sizeof text || memchr(word, '\0', length))
    return 0;
  memcpy(text, word, length);
  text[length] = '\0';
  struct address address;
  if (address_parse(text, &address) < 0)
    return 0;
  while (next_word(&line, end, &word, &length)) {
    struct host host;
    if (host_parse(word, length, &host) < 0 || host.kind != HOST_NAME)
      continue;
    struct host_name *name = name_make(hosts, host.text);
    if (!name || name_add(name, &address) < 0)
      return -ENOMEM;
  }
  return 0;
}

int hosts_parse(const char *text, size_t length, struct hosts **ret)
{
  struct hosts *hosts = calloc(1, sizeof *hosts);
  if (!hosts || name_table_init(&hosts->table, length / BYTES_PER_NAME) < 0) {
    free(hosts);
    return -ENOMEM;
  }
  const char *end = text + length;
  while (text < end) {
    const char *line_end = memchr(text, '\n', (size_t)(end - text));
    if (!line_end)
      line_end = end;
    if (parse_line(hosts, text, line_end) < 0) {
      hosts_free(hosts);
      return -ENOMEM;
    }
    text = line_end + (line_end < end);
  }
  *ret = hosts;
  return 0;
}

static void name_free(struct host_name *name)
{
  while (name->addresses) {
    struct host_address *next = name->addresses->next;
    free(name->addresses);
    name->addresses = next;
  }
  free(name);
}

void hosts_free(struct hosts *hosts)
{
  if (!hosts)
    return;
  while (hosts->names) {
    struct host_name *next = hosts->names->next;
    name_free(hosts->names);
    hosts->names = next;
  }
  name_table_clear(&hosts->table);
  free(hosts);
}

bool hosts_find(const struct hosts *hosts, const char *name, struct address_list *ret)
{
  const struct name_node *found = hosts ? name_table_find(&hosts->table, name) : NULL;
  if (!found)
    return false;
  *ret = (struct address_list){0};
  for (const struct host_address *at = ((const struct host_name *)found)->addresses; at; at = at->next)
    (void)address_list_add(ret, &at->address);
  return true;
}
