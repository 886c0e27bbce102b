#include "child/worker/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "child/worker/egress_connect.h"
#include "child/worker/outbox.h"
#include "child/worker/session.h"
#include "shared/descriptors.h"
#include "shared/text.h"

struct slot {
  struct session *session; /* NULL: free */
  struct msg_ask_egress message;
  struct slot *next; /* while it is free */
};

struct asks {
  struct slot slots[WORKER_CREDIT];
  struct slot *free;
  uint32_t in_flight;
  uint64_t uses;       /* of all slots */
  struct slot *unsent; /* the channel did not take it; at most one, because none follows while the outbox is blocked */
};

struct asks *asks_new(void)
{
  struct asks *asks = calloc(1, sizeof *asks);
  for (size_t i = 0; asks && i < WORKER_CREDIT; i++) {
    asks->slots[i].next = asks->free;
    asks->free = &asks->slots[i];
  }
  return asks;
}

void asks_free(struct asks *asks)
{
  free(asks);
}

bool ask_possible(const struct worker *worker)
{
  const struct asks *asks = worker->asks;
  return asks->free && asks->in_flight < worker->settings.credit && !outbox_blocked(worker->outbox) && !asks->unsent;
}

bool asks_quiet(const struct worker *worker)
{
  return worker->asks->in_flight == 0;
}

/* The slot of the ask with this id, or NULL when it is in flight no more. */
static struct slot *find(struct asks *asks, uint64_t id)
{
  struct slot *slot = &asks->slots[id % WORKER_CREDIT];
  return slot->session && slot->message.ask == id ? slot : NULL;
}

static void release(struct asks *asks, struct slot *slot)
{
  slot->session->ask = 0;
  slot->session = NULL;
  slot->next = asks->free;
  asks->free = slot;
  asks->in_flight--;
  if (asks->unsent == slot)
    asks->unsent = NULL;
}

static void send_ask(struct worker *worker, struct slot *slot)
{
  int sent = outbox_send_descriptor(worker->outbox, &slot->message, slot->session->client.fd);
  worker->asks->unsent = sent == 0 ? NULL : slot;
}

void ask_egress(struct session *session, const struct host *host, uint16_t port)
{
  struct asks *asks = session->worker->asks;
  struct slot *slot = asks->free;
  asks->free = slot->next;
  asks->in_flight++;
  uint64_t id = ++asks->uses * WORKER_CREDIT + (uint64_t)(slot - asks->slots);
  slot->session = session;
  slot->message = (struct msg_ask_egress){.type = MSG_ASK_EGRESS, .port = port, .ask = id};
  text_fill(slot->message.host, sizeof slot->message.host, host->text);
  session->ask = id;
  send_ask(session->worker, slot);
}

void ask_abandon(struct session *session)
{
  struct worker *worker = session->worker;
  struct slot *slot = find(worker->asks, session->ask);
  if (!slot)
    return;
  struct msg_abandon abandon = {.type = MSG_ABANDON, .ask = session->ask};
  bool sent = worker->asks->unsent != slot;
  release(worker->asks, slot);
  if (sent)
    outbox_send(worker->outbox, &abandon);
}

const char *ask_target(const struct session *session, char *ret, size_t size)
{
  const struct slot *slot = find(session->worker->asks, session->ask);
  struct host host;
  if (!slot || host_parse_canonical(slot->message.host, &host) < 0)
    return "";
  return host_format(&host, slot->message.port, ret, size);
}

/* Nobody waits for it: the parent's books must close nevertheless, and the descriptor with them. */
static void late(struct worker *worker, const union message *message)
{
  counter_add(worker->counters, COUNTER_LATE_VERDICTS, 1);
  if (message->type != MSG_GRANT)
    return;
  struct msg_session_closed closed = {
    .type = MSG_SESSION_CLOSED, .ending = ENDING_CLIENT_GONE, .session = message->GRANT.session};
  outbox_send(worker->outbox, &closed);
}

void ask_answered(struct worker *worker, const union message *message, int descriptor)
{
  cleanup_fd int upstream = descriptor;
  uint64_t id = message->type == MSG_GRANT ? message->GRANT.ask : message->REFUSAL.ask;
  struct slot *slot = find(worker->asks, id);
  if (!slot || worker->asks->unsent == slot) {
    late(worker, message);
    return;
  }
  struct session *session = slot->session;
  char target[HOST_TEXT_SIZE + 8];
  if (message->type == MSG_REFUSAL || upstream < 0)
    ask_target(session, target, sizeof target);
  release(worker->asks, slot);
  if (message->type == MSG_REFUSAL)
    egress_connect_refused(session, &message->REFUSAL, target);
  else if (upstream < 0)
    egress_connect_lost(session, message->GRANT.session, target);
  else
    egress_connect_granted(session, message->GRANT.session, steal_fd(&upstream));
}

void ask_resume(struct worker *worker)
{
  if (worker->asks->unsent && !outbox_blocked(worker->outbox))
    send_ask(worker, worker->asks->unsent);
}
