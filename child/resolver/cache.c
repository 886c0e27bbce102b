#include "child/resolver/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "child/resolver/name_table.h"

struct entry {
  struct name_node node;
  struct entry *newer;
  struct entry *older;
  uint64_t expires_ms;
  enum lookup_status status;
  struct address_list addresses;
  char name[];
};

struct cache {
  struct name_table table;
  size_t entries_max;
  size_t count;
  struct entry *newest; /* by use */
  struct entry *oldest;
};

int cache_new(size_t entries_max, struct cache **ret)
{
  struct cache *cache = calloc(1, sizeof *cache);
  if (!cache || name_table_init(&cache->table, entries_max) < 0) {
    free(cache);
    return -ENOMEM;
  }
  cache->entries_max = entries_max;
  *ret = cache;
  return 0;
}

static void unlink_entry(struct cache *cache, struct entry *entry)
{
  *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
  *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void link_newest(struct cache *cache, struct entry *entry)
{
  entry->newer = NULL;
  entry->older = cache->newest;
  *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
  cache->newest = entry;
}

static void drop(struct cache *cache, struct entry *entry)
{
  unlink_entry(cache, entry);
  name_table_remove(&cache->table, &entry->node);
  cache->count--;
  free(entry);
}

void cache_empty(struct cache *cache)
{
  while (cache->newest)
    drop(cache, cache->newest);
}

void cache_free(struct cache *cache)
{
  if (!cache)
    return;
  cache_empty(cache);
  name_table_clear(&cache->table);
  free(cache);
}

bool cache_find(struct cache *cache, const char *name, uint64_t now_ms, enum lookup_status *ret_status,
                struct address_list *ret)
{
  struct entry *entry = (struct entry *)name_table_find(&cache->table, name);
  if (!entry)
    return false;
  if (entry->expires_ms <= now_ms) {
    drop(cache, entry);
    return false;
  }
  unlink_entry(cache, entry);
  link_newest(cache, entry);
  *ret_status = entry->status;
  *ret = entry->addresses;
  return true;
}

void cache_store(struct cache *cache, const char *name, uint64_t now_ms, uint64_t expires_ms, enum lookup_status status,
                 const struct address_list *addresses)
{
  struct entry *former = (struct entry *)name_table_find(&cache->table, name);
  if (former)
    drop(cache, former);
  if (expires_ms <= now_ms)
    return;
  if (cache->count == cache->entries_max)
    drop(cache, cache->oldest);
  size_t size = strlen(name) + 1;
  struct entry *entry = calloc(1, sizeof *entry + size);
  if (!entry)
    return;
  memcpy(entry->name, name, size);
  entry->node.name = entry->name;
  entry->expires_ms = expires_ms;
  entry->status = status;
  entry->addresses = *addresses;
  name_table_insert(&cache->table, &entry->node);
  link_newest(cache, entry);
  cache->count++;
}

size_t cache_count(const struct cache *cache)
{
  return cache->count;
}
