/* Lookups in flight: one per name, others join it. Hosts file, cache, then both families at once. Trust: decides
   nothing about destinations; the parent judges every address. */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "child/resolver/address_list.h"
#include "child/resolver/hosts.h"
#include "child/resolver/question.h"
#include "shared/messages.h"

struct lookups;

/* Exactly once for each lookup_start, possibly from within it. `addresses` is empty unless FOUND. */
typedef void lookup_answered(void *arg, uint64_t id, enum lookup_status status, const struct address_list *addresses);

/* `pool` stays the caller's. 0 with *ret owned by the caller, or -ENOMEM. */
int lookups_new(struct event_base *base, struct question_pool *pool, lookup_answered *answered, void *arg,
                struct lookups **ret);

/* Before the pool is freed; no callback is called. */
void lookups_free(struct lookups *lookups);

/* New settings. What the former nameservers said is forgotten. */
void lookups_configure(struct lookups *lookups, unsigned servers, uint32_t timeout_ms);

/* Takes the hosts file over, in place of the former one. */
void lookups_set_hosts(struct lookups *lookups, struct hosts *hosts);

void lookup_start(struct lookups *lookups, uint64_t id, const char *name);
