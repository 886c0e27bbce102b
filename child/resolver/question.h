/* One question (name and family) to the nameservers, each on a c-ares channel of its own: a fresh query id from the
   channel's generator and a fresh source port. The channels are made before confinement, because c-ares seeds its
   generator from /dev/urandom when a channel is made, and would fall back to constant ids without it. */
#pragma once

#include <event2/event.h>

#include "child/resolver/answer.h"
#include "child/resolver/socket_supply.h"

struct question_pool;
struct question;

/* The end of a question: FOUND, NO_NAME, FAILED or TIMED_OUT (c-ares gave up). Called from the loop, never from within
   question_ask; the question is back in the pool already. */
typedef void question_answered(void *arg, const struct answer *answer);

/* Makes all channels. 0 with *ret owned by the caller, or -errno. */
int question_pool_new(struct event_base *base, struct socket_supply *supply, size_t channels,
                      struct question_pool **ret);

/* No callback is called any more. */
void question_pool_free(struct question_pool *pool);

/* For questions from now on. */
void question_pool_set_servers(struct question_pool *pool, unsigned servers);

size_t question_pool_idle(const struct question_pool *pool);

/* Asks for addresses of `family` (4 or 6). NULL when no channel is idle. `name` is canonical. */
struct question *question_ask(struct question_pool *pool, const char *name, unsigned family,
                              question_answered *answered, void *arg);

/* Gives the question up; its callback is not called. */
void question_cancel(struct question *question);
