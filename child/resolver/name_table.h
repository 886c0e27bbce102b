/* Hash table over names, for the hosts file, the cache and the lookups in flight. The nodes are part of the caller's
   structs, which own them; the hash is keyed, because clients choose the names. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct name_node {
  struct name_node *next;
  const char *name; /* canonical (lower case); lives as long as the node is in the table */
  uint64_t hash;
};

struct name_table {
  struct name_node **buckets;
  size_t mask;
  uint64_t key;
};

/* `expected` is how many nodes there will be at most, for the number of buckets. 0 or -ENOMEM. */
int name_table_init(struct name_table *table, size_t expected);

/* Frees the buckets, not the nodes. */
void name_table_clear(struct name_table *table);

/* NULL when there is none. */
struct name_node *name_table_find(const struct name_table *table, const char *name);

/* node->name is set; the name must not be in the table yet. */
void name_table_insert(struct name_table *table, struct name_node *node);

/* The node must be in the table. */
void name_table_remove(struct name_table *table, struct name_node *node);
