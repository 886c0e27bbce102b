/* The resolver's end of the channel: what cannot be sent now waits, and meanwhile nothing more is read, so that what
   waits stays bounded by what is in flight. */
#pragma once

#include <event2/event.h>

#include "shared/messages.h"

struct parent_link;

/* A message from the parent, checked by channel_receive. `descriptor` is the callee's, -1 when the type has none or it
   could not be received. */
typedef void parent_link_handler(void *arg, const union message *message, int descriptor);

/* 0 with *ret owned by the caller, or -ENOMEM. `channel` stays the caller's. Receives from the first turn of the loop.
 */
int parent_link_new(struct event_base *base, int channel, parent_link_handler *handle, void *arg,
                    struct parent_link **ret);

void parent_link_free(struct parent_link *link);

/* Sends, or keeps a copy until the parent has read. When the parent is gone, or memory is out, the loop ends. */
void parent_link_send(struct parent_link *link, const void *message);

/* Whether the loop ended because the parent closed its end, which is the orderly end of a child. */
bool parent_link_ended_well(const struct parent_link *link);
