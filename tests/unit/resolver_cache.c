#include <criterion/criterion.h>
#include <stdio.h>

#include "child/resolver/cache.h"

static struct cache *cache;

static void set_up(void)
{
  cr_assert_eq(cache_new(3, &cache), 0);
}

static void tear_down(void)
{
  cache_free(cache);
}

TestSuite(resolver_cache, .init = set_up, .fini = tear_down);

static void store(const char *name, uint64_t now_ms, uint64_t expires_ms, unsigned last)
{
  struct address_list list = {.count = 1, .addresses = {{.family = 4, .bytes = {10, 0, 0, (uint8_t)last}}}};
  cache_store(cache, name, now_ms, expires_ms, LOOKUP_FOUND, &list);
}

/* Last byte of the address that the cache has, or -1. */
static int cached(const char *name, uint64_t now_ms)
{
  enum lookup_status status;
  struct address_list list;
  if (!cache_find(cache, name, now_ms, &status, &list))
    return -1;
  cr_expect_eq(status, LOOKUP_FOUND);
  return list.addresses[0].bytes[3];
}

Test(resolver_cache, holds_until_it_expires)
{
  store("a.test", 1000, 2000, 1);
  cr_expect_eq(cached("a.test", 1999), 1);
  cr_expect_eq(cached("a.test", 2000), -1);
  cr_expect_eq(cache_count(cache), 0u);
  cr_expect_eq(cached("b.test", 0), -1);
}

Test(resolver_cache, zero_ttl_is_not_kept)
{
  store("a.test", 1000, 1000, 1);
  cr_expect_eq(cache_count(cache), 0u);
  cr_expect_eq(cached("a.test", 1000), -1);
}

Test(resolver_cache, replaces)
{
  store("a.test", 0, 100, 1);
  store("a.test", 0, 100, 2);
  cr_expect_eq(cached("a.test", 1), 2);
  cr_expect_eq(cache_count(cache), 1u);
  /* An answer that may not be kept takes the former one with it. */
  store("a.test", 50, 50, 3);
  cr_expect_eq(cached("a.test", 60), -1);
}

Test(resolver_cache, least_recently_used_goes_first)
{
  store("a.test", 0, 100, 1);
  store("b.test", 0, 100, 2);
  store("c.test", 0, 100, 3);
  cr_expect_eq(cached("a.test", 1), 1);
  store("d.test", 0, 100, 4);
  cr_expect_eq(cached("b.test", 1), -1);
  cr_expect_eq(cached("a.test", 1), 1);
  cr_expect_eq(cached("c.test", 1), 3);
  cr_expect_eq(cached("d.test", 1), 4);
  cr_expect_eq(cache_count(cache), 3u);
}

Test(resolver_cache, stays_bounded)
{
  for (unsigned i = 0; i < 1000; i++) {
    char name[32];
    snprintf(name, sizeof name, "n%u.test", i);
    store(name, 0, 100, i % 256);
    cr_assert_leq(cache_count(cache), 3u);
  }
  cr_expect_eq(cached("n999.test", 1), 999 % 256);
  cache_empty(cache);
  cr_expect_eq(cache_count(cache), 0u);
  cr_expect_eq(cached("n999.test", 1), -1);
}

Test(resolver_cache, keeps_that_there_is_none)
{
  enum lookup_status status;
  struct address_list list = {0};
  cache_store(cache, "nx.test", 0, 100, LOOKUP_NO_NAME, &list);
  cr_assert(cache_find(cache, "nx.test", 1, &status, &list));
  cr_expect_eq(status, LOOKUP_NO_NAME);
  cr_expect_eq(list.count, 0u);
}
