#include "child/resolver/name_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* FNV-1a, whose primes are its definition, started from a key. The tables are bounded, so that whoever found collisions
   all the same would gain a longer chain and no more. */
#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static uint64_t hash_of(const struct name_table *table, const char *name)
{
  uint64_t hash = FNV_OFFSET ^ table->key;
  for (; *name; name++)
    hash = (hash ^ (uint8_t)*name) * FNV_PRIME;
  return hash ^ (hash >> 32);
}

int name_table_init(struct name_table *table, size_t expected)
{
  size_t buckets = 1;
  while (buckets < expected)
    buckets *= 2;
  *table = (struct name_table){.buckets = calloc(buckets, sizeof(struct name_node *)), .mask = buckets - 1};
  if (!table->buckets)
    return -ENOMEM;
  /* Without a key the table works as well, only more predictably. */
  (void)!getrandom(&table->key, sizeof table->key, GRND_NONBLOCK);
  return 0;
}

void name_table_clear(struct name_table *table)
{
  free(table->buckets);
  *table = (struct name_table){0};
}

struct name_node *name_table_find(const struct name_table *table, const char *name)
{
  uint64_t hash = hash_of(table, name);
  for (struct name_node *node = table->buckets[hash & table->mask]; node; node = node->next)
    if (node->hash == hash && strcmp(node->name, name) == 0)
      return node;
  return NULL;
}

void name_table_insert(struct name_table *table, struct name_node *node)
{
  node->hash = hash_of(table, node->name);
  struct name_node **bucket = &table->buckets[node->hash & table->mask];
  node->next = *bucket;
  *bucket = node;
}

void name_table_remove(struct name_table *table, struct name_node *node)
{
  struct name_node **link = &table->buckets[node->hash & table->mask];
  while (*link != node)
    link = &(*link)->next;
  *link = node->next;
}
