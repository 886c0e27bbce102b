/* What goes to the parent. Messages leave at once; when the channel is full, those without a descriptor wait here in
   order, and those with one are refused to their sender, who still owns the descriptor. */
#pragma once

#include <stdbool.h>

#include "child/worker/worker.h"

/* NULL when memory ran out. */
struct outbox *outbox_new(struct worker *worker);
void outbox_free(struct outbox *outbox);

/* The channel is full: nothing that needs the channel should be begun now. */
bool outbox_blocked(const struct outbox *outbox);

/* Nothing is queued or put off. */
bool outbox_empty(const struct outbox *outbox);

/* Sends or queues a message without descriptor. It cannot fail: a queue that has outgrown every bound, or a dead
   channel, ends the worker. */
void outbox_send(struct outbox *outbox, const void *message);

/* Sends a message without descriptor soon: behind the next one that has one, so that the parent is woken once for both,
   or after WORKER_REPORT_DELAY_MS. For reports that nobody waits for. */
void outbox_send_later(struct outbox *outbox, const void *message);

/* Sends what was put off. */
void outbox_send_now(struct outbox *outbox);

/* Sends a message with descriptor, which stays the caller's. 0, or -EAGAIN: not sent; the outbox is blocked until
   worker_turn finds it open and calls on those who wait. */
int outbox_send_descriptor(struct outbox *outbox, const void *message, int descriptor);
