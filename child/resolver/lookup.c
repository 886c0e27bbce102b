#include "child/resolver/lookup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "child/resolver/cache.h"
#include "child/resolver/name_table.h"
#include "policy/egress/host.h"
#include "shared/clock.h"
#include "shared/log.h"

enum { V6, V4, FAMILIES };
static const unsigned family_number[FAMILIES] = {[V6] = 6, [V4] = 4};

struct waiter {
  struct waiter *next;
  uint64_t id;
};

struct half { /* one family's part of a lookup */
  struct lookup *lookup;
  struct question *question; /* NULL: not asked yet, or answered */
  bool answered;
  uint64_t expires_ms;
  struct answer answer;
};

/* WAITING -> ASKING -> (answered; freed, or COMPLETING -> freed). While WAITING or ASKING it is in the table, and those
   who want the same name join. COMPLETING: the waiters got one family, which the cache has, too; the other may still
   add to the cache. */
enum lookup_state { WAITING, ASKING, COMPLETING };

struct lookup {
  struct name_node node;
  struct lookups *all;
  struct lookup *next; /* in the list of its state */
  struct lookup *previous;
  enum lookup_state state;
  bool former; /* asked of nameservers that are no longer configured: answered, but not kept */
  struct half halves[FAMILIES];
  struct event *deadline;
  struct event *delay; /* RFC 8305 section 3 */
  struct waiter *waiters;
  struct waiter **waiters_end;
  char name[HOST_TEXT_SIZE];
};

struct lookup_list {
  struct lookup *first;
  struct lookup *last;
};

struct lookups {
  struct event_base *base;
  struct question_pool *pool;
  struct cache *cache;
  struct hosts *hosts;
  struct name_table table;
  struct lookup_list lists[COMPLETING + 1];
  size_t waiter_count;
  unsigned servers;
  struct timeval timeout;
  lookup_answered *answered;
  void *arg;
};

static const struct timeval resolution_delay = {.tv_usec = RESOLUTION_DELAY_MS * 1000};

static void list_remove(struct lookup *lookup)
{
  struct lookup_list *list = &lookup->all->lists[lookup->state];
  *(lookup->previous ? &lookup->previous->next : &list->first) = lookup->next;
  *(lookup->next ? &lookup->next->previous : &list->last) = lookup->previous;
}

static void list_append(struct lookup *lookup, enum lookup_state state)
{
  struct lookup_list *list = &lookup->all->lists[state];
  lookup->state = state;
  lookup->next = NULL;
  lookup->previous = list->last;
  *(list->last ? &list->last->next : &list->first) = lookup;
  list->last = lookup;
}

static void set_state(struct lookup *lookup, enum lookup_state state)
{
  list_remove(lookup);
  if (state == COMPLETING)
    name_table_remove(&lookup->all->table, &lookup->node);
  list_append(lookup, state);
}

static void lookup_free(struct lookup *lookup)
{
  list_remove(lookup);
  if (lookup->state != COMPLETING)
    name_table_remove(&lookup->all->table, &lookup->node);
  for (size_t i = 0; i < FAMILIES; i++)
    if (lookup->halves[i].question)
      question_cancel(lookup->halves[i].question);
  while (lookup->waiters) {
    struct waiter *next = lookup->waiters->next;
    free(lookup->waiters);
    lookup->waiters = next;
    lookup->all->waiter_count--;
  }
  if (lookup->deadline)
    event_free(lookup->deadline);
  if (lookup->delay)
    event_free(lookup->delay);
  free(lookup);
}

/* What is known by now, in one answer. A family that failed does not matter beside one that was found; without any, a
   failure outweighs "no such name", which both families must say. */
static enum lookup_status combine(const struct lookup *lookup, struct address_list *ret, uint64_t *ret_expires_ms)
{
  static const struct address_list none;
  const struct address_list *found[FAMILIES];
  uint64_t positive_ms = UINT64_MAX, negative_ms = UINT64_MAX;
  enum lookup_status worst = LOOKUP_NO_NAME;
  for (size_t i = 0; i < FAMILIES; i++) {
    const struct half *half = &lookup->halves[i];
    enum lookup_status status = half->answered ? half->answer.status : LOOKUP_TIMED_OUT;
    found[i] = status == LOOKUP_FOUND ? &half->answer.addresses : &none;
    if (status == LOOKUP_FOUND && half->expires_ms < positive_ms)
      positive_ms = half->expires_ms;
    if (status == LOOKUP_NO_NAME && half->expires_ms < negative_ms)
      negative_ms = half->expires_ms;
    if (status > worst)
      worst = status;
  }
  address_list_interleave(found[V6], found[V4], ret);
  enum lookup_status status = ret->count > 0 ? LOOKUP_FOUND : worst;
  *ret_expires_ms = status == LOOKUP_FOUND ? positive_ms : status == LOOKUP_NO_NAME ? negative_ms : 0;
  return status;
}

static void answer_waiters(struct lookup *lookup, enum lookup_status status, const struct address_list *addresses)
{
  struct lookups *all = lookup->all;
  while (lookup->waiters) {
    struct waiter *waiter = lookup->waiters;
    lookup->waiters = waiter->next;
    all->waiter_count--;
    all->answered(all->arg, waiter->id, status, addresses);
    free(waiter);
  }
  lookup->waiters_end = &lookup->waiters;
}

/* Answers with what is known. True when the answer went into the cache. */
static bool conclude(struct lookup *lookup)
{
  struct address_list addresses;
  uint64_t expires_ms, now_ms = clock_monotonic_ms();
  enum lookup_status status = combine(lookup, &addresses, &expires_ms);
  bool cacheable = expires_ms > now_ms && !lookup->former;
  if (cacheable)
    cache_store(lookup->all->cache, lookup->name, now_ms, expires_ms, status, &addresses);
  log_debug("\"%s\": status %d, %zu addresses, for %llu ms", lookup->name, status, addresses.count,
            cacheable ? (unsigned long long)(expires_ms - now_ms) : 0ULL);
  answer_waiters(lookup, status, &addresses);
  return cacheable;
}

static void ask_waiting(struct lookups *lookups);

/* Nobody waits for it any more; those who wait for a channel may have its own. */
static void give_up(struct lookup *lookup)
{
  struct lookups *all = lookup->all;
  lookup_free(lookup);
  ask_waiting(all);
}

static void finish(struct lookup *lookup)
{
  (void)conclude(lookup);
  give_up(lookup);
}

static void half_answered(void *arg, const struct answer *answer)
{
  struct half *half = arg;
  struct lookup *lookup = half->lookup;
  half->question = NULL;
  half->answered = true;
  half->answer = *answer;
  half->expires_ms = clock_monotonic_ms() + (uint64_t)answer->ttl_s * 1000;
  if (lookup->state == COMPLETING && answer->status != LOOKUP_FOUND) {
    give_up(lookup);
    return;
  }
  if (lookup->halves[V6].answered && lookup->halves[V4].answered) {
    finish(lookup);
    return;
  }
  if (answer->status == LOOKUP_FOUND)
    evtimer_add(lookup->delay, &resolution_delay);
  ask_waiting(lookup->all);
}

static void delay_over(evutil_socket_t fd, short what, void *arg)
{
  (void)fd;
  (void)what;
  struct lookup *lookup = arg;
  /* What may not be cached may not be given to those who come later either. */
  if (conclude(lookup)) {
    set_state(lookup, COMPLETING);
    return;
  }
  give_up(lookup);
}

static void deadline_over(evutil_socket_t fd, short what, void *arg)
{
  (void)fd;
  (void)what;
  struct lookup *lookup = arg;
  if (lookup->state == COMPLETING)
    give_up(lookup);
  else
    finish(lookup);
}

static void ask(struct lookup *lookup)
{
  set_state(lookup, ASKING);
  for (size_t i = 0; i < FAMILIES; i++)
    lookup->halves[i].question =
      question_ask(lookup->all->pool, lookup->name, family_number[i], half_answered, &lookup->halves[i]);
}

static void ask_waiting(struct lookups *lookups)
{
  while (lookups->lists[WAITING].first && question_pool_idle(lookups->pool) >= FAMILIES)
    ask(lookups->lists[WAITING].first);
}

static struct lookup *lookup_new(struct lookups *lookups, const char *name)
{
  struct lookup *lookup = calloc(1, sizeof *lookup);
  if (!lookup)
    return NULL;
  *lookup = (struct lookup){.all = lookups, .node.name = lookup->name, .waiters_end = &lookup->waiters};
  memcpy(lookup->name, name, strlen(name) + 1);
  for (size_t i = 0; i < FAMILIES; i++)
    lookup->halves[i].lookup = lookup;
  name_table_insert(&lookups->table, &lookup->node);
  list_append(lookup, WAITING);
  lookup->deadline = evtimer_new(lookups->base, deadline_over, lookup);
  lookup->delay = evtimer_new(lookups->base, delay_over, lookup);
  if (!lookup->deadline || !lookup->delay || evtimer_add(lookup->deadline, &lookups->timeout) < 0) {
    lookup_free(lookup);
    return NULL;
  }
  return lookup;
}

/* Answers of itself: no name, hosts file, cache. */
static bool answer_at_once(struct lookups *lookups, const char *name, enum lookup_status *ret_status,
                           struct address_list *ret)
{
  struct host host;
  *ret = (struct address_list){0};
  *ret_status = LOOKUP_FOUND;
  if (hosts_find(lookups->hosts, name, ret))
    return true;
  /* The parent asks for canonical names only; whatever else came here shall not leave the process. */
  *ret_status = LOOKUP_FAILED;
  if (lookups->servers == 0 || host_parse_canonical(name, &host) < 0 || host.kind != HOST_NAME)
    return true;
  return cache_find(lookups->cache, name, clock_monotonic_ms(), ret_status, ret);
}

static bool join(struct lookups *lookups, uint64_t id, const char *name)
{
  struct waiter *waiter = malloc(sizeof *waiter);
  struct lookup *lookup = (struct lookup *)name_table_find(&lookups->table, name);
  if (waiter && !lookup)
    lookup = lookup_new(lookups, name);
  if (!waiter || !lookup) {
    free(waiter);
    return false;
  }
  *waiter = (struct waiter){.id = id};
  *lookup->waiters_end = waiter;
  lookup->waiters_end = &waiter->next;
  lookups->waiter_count++;
  return true;
}

void lookup_start(struct lookups *lookups, uint64_t id, const char *name)
{
  enum lookup_status status;
  struct address_list addresses;
  if (answer_at_once(lookups, name, &status, &addresses)) {
    lookups->answered(lookups->arg, id, status, &addresses);
    return;
  }
  if (lookups->waiter_count >= RESOLVER_LOOKUPS_MAX || !join(lookups, id, name)) {
    addresses = (struct address_list){0};
    lookups->answered(lookups->arg, id, LOOKUP_OVERLOADED, &addresses);
    return;
  }
  ask_waiting(lookups);
}

int lookups_new(struct event_base *base, struct question_pool *pool, lookup_answered *answered, void *arg,
                struct lookups **ret)
{
  struct lookups *lookups = calloc(1, sizeof *lookups);
  if (!lookups)
    return -ENOMEM;
  *lookups = (struct lookups){.base = base, .pool = pool, .answered = answered, .arg = arg};
  if (name_table_init(&lookups->table, RESOLVER_LOOKUPS_MAX) < 0 ||
      cache_new(RESOLVER_CACHE_ENTRIES, &lookups->cache) < 0) {
    lookups_free(lookups);
    return -ENOMEM;
  }
  *ret = lookups;
  return 0;
}

void lookups_free(struct lookups *lookups)
{
  if (!lookups)
    return;
  for (size_t i = 0; i <= COMPLETING; i++)
    while (lookups->lists[i].first)
      lookup_free(lookups->lists[i].first);
  name_table_clear(&lookups->table);
  cache_free(lookups->cache);
  hosts_free(lookups->hosts);
  free(lookups);
}

void lookups_configure(struct lookups *lookups, unsigned servers, uint32_t timeout_ms)
{
  lookups->servers = servers;
  lookups->timeout = (struct timeval){.tv_sec = timeout_ms / 1000, .tv_usec = (timeout_ms % 1000) * 1000};
  cache_empty(lookups->cache);
  for (size_t i = 0; i <= COMPLETING; i++)
    for (struct lookup *lookup = lookups->lists[i].first; lookup; lookup = lookup->next)
      lookup->former = lookup->state != WAITING;
}

void lookups_set_hosts(struct lookups *lookups, struct hosts *hosts)
{
  hosts_free(lookups->hosts);
  lookups->hosts = hosts;
}
