/* What nameservers said, until it expires: bounded, the least recently used goes first. Pure but for the memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "child/resolver/address_list.h"
#include "shared/messages.h"

struct cache;

/* 0 with *ret owned by the caller, or -ENOMEM. */
int cache_new(size_t entries_max, struct cache **ret);

void cache_free(struct cache *cache);

/* Forgets everything. */
void cache_empty(struct cache *cache);

/* Whether there is an entry that holds at now_ms; then *ret_status is LOOKUP_FOUND or LOOKUP_NO_NAME, and *ret has the
   addresses. Times are clock_monotonic_ms. */
bool cache_find(struct cache *cache, const char *name, uint64_t now_ms, enum lookup_status *ret_status,
                struct address_list *ret);

/* Replaces what was there. Not stored when it has expired already (a TTL of zero), or for want of memory: the cache is
   a convenience. */
void cache_store(struct cache *cache, const char *name, uint64_t now_ms, uint64_t expires_ms, enum lookup_status status,
                 const struct address_list *addresses);

/* Entries held, expired ones included. */
size_t cache_count(const struct cache *cache);
