/* Asks to the parent and their answers. An ask has a slot; its id names slot and use of the slot, so that a late answer
   never meets a later ask. */
#pragma once

#include "child/worker/worker.h"
#include "policy/egress/host.h"

/* NULL when memory ran out. */
struct asks *asks_new(void);
void asks_free(struct asks *asks);

/* One more may be asked now: credit is left, and the channel takes messages. */
bool ask_possible(const struct worker *worker);

/* May this session's client go to host and port? Sets session->ask; the answer comes to egress_connect.h, unless
   ask_abandon is called before. ask_possible must hold. */
void ask_egress(struct session *session, const struct host *host, uint16_t port);

/* The session wants no answer any more: the parent is told to stop, and a descriptor that comes nevertheless is closed
   and its session reported closed. */
void ask_abandon(struct session *session);

/* "host:port" of the session's ask in flight. Returns `ret`; size at least HOST_TEXT_SIZE + 8. */
const char *ask_target(const struct session *session, char *ret, size_t size);

/* GRANT (descriptor -1: it was lost on the way) or REFUSAL. Takes over the descriptor. */
void ask_answered(struct worker *worker, const union message *message, int descriptor);

/* The channel takes messages again: sends the ask that it did not take before. */
void ask_resume(struct worker *worker);

/* No answer is waited for. */
bool asks_quiet(const struct worker *worker);
