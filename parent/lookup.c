#include "parent/lookup.h"

#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>

#include "parent/supervise.h"
#include "shared/text.h"

#define STUCK_RESOLVER_MS 1000 /* beyond its own limit */

/* An id is slot and sequence number, so that a late answer finds nothing instead of a successor. */
struct slot {
  struct lookup *lookup;
  uint32_t sequence;
  uint32_t next_free;
};

struct lookups {
  struct event_base *base;
  const struct timeval *timeout;
  struct slot slots[DIALS_IN_FLIGHT_MAX];
  uint32_t first_free; /* index; DIALS_IN_FLIGHT_MAX: none */
};

struct lookup {
  struct lookups *lookups;
  uint64_t id;
  lookup_done *done;
  void *context;
  struct event deadline;
  char name[HOST_TEXT_SIZE];
};

struct lookups *lookups_new(struct event_base *base, unsigned timeout_ms)
{
  struct lookups *lookups = calloc(1, sizeof *lookups);
  if (!lookups)
    return NULL;
  unsigned total_ms = timeout_ms + STUCK_RESOLVER_MS;
  struct timeval timeout = {.tv_sec = total_ms / 1000, .tv_usec = (total_ms % 1000) * 1000};
  lookups->base = base;
  lookups->timeout = event_base_init_common_timeout(base, &timeout);
  for (uint32_t i = 0; i < DIALS_IN_FLIGHT_MAX; i++)
    lookups->slots[i].next_free = i + 1;
  return lookups;
}

void lookups_free(struct lookups *lookups)
{
  for (size_t i = 0; i < DIALS_IN_FLIGHT_MAX; i++)
    if (lookups->slots[i].lookup)
      lookup_cancel(lookups->slots[i].lookup);
  free(lookups);
}

static struct slot *slot_of(struct lookups *lookups, uint64_t id)
{
  uint64_t index = id & UINT32_MAX;
  if (index >= DIALS_IN_FLIGHT_MAX)
    return NULL;
  struct slot *slot = &lookups->slots[index];
  return slot->lookup && slot->lookup->id == id ? slot : NULL;
}

static void timed_out(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct lookup *lookup = argument;
  lookup_done *done = lookup->done;
  void *context = lookup->context;
  lookup_cancel(lookup);
  done(context, LOOKUP_TIMED_OUT, NULL, 0);
}

static void send_lookup(const struct lookup *lookup, struct child *resolver)
{
  struct msg_lookup message = {.type = MSG_LOOKUP, .lookup = lookup->id};
  text_fill(message.name, sizeof message.name, lookup->name);
  child_send(resolver, &message, -1);
}

struct lookup *lookup_start(struct lookups *lookups, struct child *resolver, const char *name, lookup_done *done,
                            void *context)
{
  uint32_t index = lookups->first_free;
  if (index == DIALS_IN_FLIGHT_MAX)
    return NULL;
  struct lookup *lookup = calloc(1, sizeof *lookup);
  if (!lookup)
    return NULL;
  struct slot *slot = &lookups->slots[index];
  lookups->first_free = slot->next_free;
  slot->lookup = lookup;
  lookup->lookups = lookups;
  lookup->id = (uint64_t)++slot->sequence << 32 | index;
  lookup->done = done;
  lookup->context = context;
  text_fill(lookup->name, sizeof lookup->name, name);
  evtimer_assign(&lookup->deadline, lookups->base, timed_out, lookup);
  event_add(&lookup->deadline, lookups->timeout);
  if (resolver)
    send_lookup(lookup, resolver);
  return lookup;
}

void lookup_cancel(struct lookup *lookup)
{
  struct lookups *lookups = lookup->lookups;
  struct slot *slot = slot_of(lookups, lookup->id);
  slot->lookup = NULL;
  slot->next_free = lookups->first_free;
  lookups->first_free = (uint32_t)(slot - lookups->slots);
  event_del(&lookup->deadline);
  free(lookup);
}

void lookups_resolver_ready(struct lookups *lookups, struct child *resolver)
{
  for (size_t i = 0; i < DIALS_IN_FLIGHT_MAX; i++)
    if (lookups->slots[i].lookup)
      send_lookup(lookups->slots[i].lookup, resolver);
}

const char *lookups_answer(struct lookups *lookups, const struct msg_lookup_answer *answer)
{
  struct slot *slot = slot_of(lookups, answer->lookup);
  if (!slot) {
    /* Sequence numbers are handed out in order: one that never was cannot be late. */
    uint64_t index = answer->lookup & UINT32_MAX;
    bool was_asked = index < DIALS_IN_FLIGHT_MAX && answer->lookup >> 32 > 0 &&
                     (uint32_t)(answer->lookup >> 32) <= lookups->slots[index].sequence;
    return was_asked ? NULL : "an answer to what was never asked";
  }
  struct lookup *lookup = slot->lookup;
  lookup_done *done = lookup->done;
  void *context = lookup->context;
  lookup_cancel(lookup);
  done(context, (enum lookup_status)answer->status, answer->addresses, answer->count);
  return NULL;
}
