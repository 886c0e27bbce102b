/* The life of an egress ask: who is the client, may it, where is that, connect, record, answer. Trust: privileged;
   every field of the ask is checked, the client is read from its descriptor, the destination is dialled here. */
#pragma once

#include <event2/event.h>

#include "parent/audit.h"
#include "parent/books.h"
#include "parent/listeners.h"
#include "parent/supervise.h"
#include "policy/config/config.h"

struct egress;

struct egress_settings {
  struct event_base *base;
  const struct config *config;
  struct audit *audit;
  struct listeners *listeners;
  size_t dials_max; /* sockets being connected at once */
};

/* NULL when memory is short. */
struct egress *egress_new(const struct egress_settings *settings);
void egress_free(struct egress *egress);

/* The supervisor is known later than this object, as each needs the other. */
void egress_set_supervisor(struct egress *egress, struct supervisor *supervisor);

/* Messages of workers and the resolver: NULL, or a literal that says how the child broke the rules.
   answer_egress is the twin of the worker's ask_egress. `client` is the ask's descriptor: it is only read, -1 when this
   process could not receive it. */
const char *answer_egress(struct egress *egress, struct child *worker, const struct msg_ask_egress *message,
                          int client);
const char *egress_abandon(struct egress *egress, struct child *worker, const struct msg_abandon *abandon);
const char *egress_session_closed(struct egress *egress, struct child *worker, const struct msg_session_closed *closed);
const char *egress_worker_refused(struct egress *egress, struct child *worker, const struct msg_worker_refused *refused,
                                  int client);
const char *egress_lookup_answer(struct egress *egress, const struct msg_lookup_answer *answer);

void egress_resolver_ready(struct egress *egress, struct child *resolver);

/* The worker is gone: its asks are dropped, its dials abandoned, its grants closed in the books and the audit. */
void egress_worker_down(struct egress *egress, struct child *worker);

/* Once per round of the event loop: writes the records of what was decided, then sends the answers. */
void egress_flush(struct egress *egress);

size_t egress_grants(const struct egress *egress);
size_t egress_asks(const struct egress *egress);
