/* Names to addresses, by way of the resolver. The parent sends canonical names and takes fixed-size answers. */
#pragma once

#include <event2/event.h>

#include "shared/messages.h"

struct child;
struct lookups;
struct lookup;

/* The answer came, or the time is over (LOOKUP_TIMED_OUT). Addresses are unchecked. The lookup is freed after the call.
 */
typedef void lookup_done(void *context, enum lookup_status status, const struct address *addresses, size_t count);

/* `timeout_ms`: the resolver's own limit; here a little more is allowed, in case it is stuck. NULL when memory is
 * short. */
struct lookups *lookups_new(struct event_base *base, unsigned timeout_ms);
void lookups_free(struct lookups *lookups);

/* Starts one; sent now when `resolver` serves (NULL: as soon as there is one). NULL when too many are in flight or
   memory is short; `done` is then not called. */
struct lookup *lookup_start(struct lookups *lookups, struct child *resolver, const char *name, lookup_done *done,
                            void *context);
void lookup_cancel(struct lookup *lookup);

/* A new resolver serves: what waited, and what its predecessor took along, is sent to it. */
void lookups_resolver_ready(struct lookups *lookups, struct child *resolver);

/* NULL, or how the resolver broke the rules. An answer to what is not asked any more is normal. */
const char *lookups_answer(struct lookups *lookups, const struct msg_lookup_answer *answer);
