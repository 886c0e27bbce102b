#include "parent/answer_egress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parent/egress_ask.h"
#include "shared/descriptors.h"
#include "shared/log.h"

/* Session ids go up from the nanosecond of the start: a restart repeats none, as no nanosecond has a session. */
static uint64_t first_session(void)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

struct egress *egress_new(const struct egress_settings *settings)
{
  struct egress *egress = calloc(1, sizeof *egress);
  if (!egress)
    return NULL;
  egress->set = *settings;
  egress->next_session = first_session();
  egress->books = books_new();
  egress->dialer = dialer_new(settings->base, &settings->config->limits, settings->dials_max);
  egress->lookups = lookups_new(settings->base, settings->config->limits.dns_timeout_ms);
  egress->in_flight = calloc(WORKERS_MAX, sizeof *egress->in_flight);
  if (!egress->books || !egress->dialer || !egress->lookups || !egress->in_flight) {
    egress_free(egress);
    return NULL;
  }
  return egress;
}

void ask_list_add(struct ask_list *list, struct ask *ask)
{
  ask->next = NULL;
  ask->previous = list->last;
  if (list->last)
    list->last->next = ask;
  else
    list->first = ask;
  list->last = ask;
}

void ask_list_remove(struct ask_list *list, struct ask *ask)
{
  if (ask->previous)
    ask->previous->next = ask->next;
  else
    list->first = ask->next;
  if (ask->next)
    ask->next->previous = ask->previous;
  else
    list->last = ask->previous;
}

void ask_release_credit(struct ask *ask)
{
  if (ask->holds_credit)
    ask->egress->in_flight[child_index(ask->worker)]--;
  ask->holds_credit = false;
}

/* A worker's ids are consecutive or slots: either way their low bits spread. */
static struct ask **bucket_of(struct egress *egress, const struct child *worker, uint64_t id)
{
  return &egress->by_id[(id ^ id >> 32 ^ (uint64_t)child_index(worker) << 6) & (ASK_BUCKETS - 1)];
}

static struct ask *find(struct egress *egress, const struct child *worker, uint64_t id)
{
  struct ask *ask = *bucket_of(egress, worker, id);
  while (ask && (ask->worker != worker || ask->id != id))
    ask = ask->hash_next;
  return ask;
}

static void ask_enter(struct ask *ask)
{
  struct ask **bucket = bucket_of(ask->egress, ask->worker, ask->id);
  ask->hash_next = *bucket;
  *bucket = ask;
  ask_list_add(&ask->egress->open, ask);
}

static void ask_strike(struct ask *ask)
{
  struct ask **link = bucket_of(ask->egress, ask->worker, ask->id);
  while (*link != ask)
    link = &(*link)->hash_next;
  *link = ask->hash_next;
  ask_list_remove(ask->is_decided ? &ask->egress->decided : &ask->egress->open, ask);
}

/* Of an ask that is struck out. */
static void ask_release(struct ask *ask)
{
  if (ask->lookup)
    lookup_cancel(ask->lookup);
  if (ask->dial)
    dial_cancel(ask->dial);
  descriptor_close(&ask->descriptor);
  ask->egress->asks--;
  free(ask);
}

static void ask_free(struct ask *ask)
{
  ask_strike(ask);
  ask_release(ask);
}

static void drop_all(struct ask_list *list)
{
  while (list->first) {
    ask_free(list->first);
  }
}

void egress_free(struct egress *egress)
{
  drop_all(&egress->open);
  drop_all(&egress->decided);
  if (egress->lookups)
    lookups_free(egress->lookups);
  if (egress->dialer)
    dialer_free(egress->dialer);
  if (egress->books)
    books_free(egress->books);
  free(egress->in_flight);
  free(egress);
}

void egress_set_supervisor(struct egress *egress, struct supervisor *supervisor)
{
  egress->supervisor = supervisor;
}

/* The ask is decided: recorded and answered with all others of this round. */
static void decided(struct ask *ask, enum reason reason)
{
  struct egress *egress = ask->egress;
  ask->reason = reason;
  ask_list_remove(&egress->open, ask);
  ask->is_decided = true;
  ask_list_add(&egress->decided, ask);
}

static void dialled(void *context, enum reason reason, int fd, const struct endpoint *endpoint)
{
  struct ask *ask = context;
  ask->dial = NULL;
  ask->descriptor = fd;
  ask->upstream = *endpoint;
  decided(ask, reason);
}

static void dial(struct ask *ask, const struct endpoint *endpoints, size_t count)
{
  struct dial *in_progress;
  dial_start(ask->egress->dialer, endpoints, count, dialled, ask, &in_progress);
  if (in_progress) /* else the ask is decided already */
    ask->dial = in_progress;
}

/* Each address that the name has is judged; the survivors are what is dialled. */
static void resolved(void *context, enum lookup_status status, const struct address *addresses, size_t count)
{
  static const enum reason failures[LOOKUP_STATUS_COUNT] = {
    [LOOKUP_NO_NAME] = REASON_DNS_ERROR,
    [LOOKUP_FAILED] = REASON_DNS_ERROR,
    [LOOKUP_TIMED_OUT] = REASON_DNS_TIMEOUT,
    [LOOKUP_OVERLOADED] = REASON_LIMIT_REACHED,
  };
  struct ask *ask = context;
  struct egress *egress = ask->egress;
  ask->lookup = NULL;
  if (status != LOOKUP_FOUND) {
    decided(ask, failures[status]);
    return;
  }
  const struct policy *policy = ask->client.listener->policy;
  const struct own_listeners *own = listeners_own(egress->set.listeners);
  struct endpoint survivors[LOOKUP_ADDRESSES_MAX];
  size_t surviving = 0;
  struct verdict worst = {.reason = REASON_DNS_ERROR};
  for (size_t i = 0; i < count; i++) {
    struct verdict verdict = decide_address(policy, ask->allowed_by, &addresses[i], ask->port, own);
    if (verdict.reason == REASON_NONE)
      survivors[surviving++] = (struct endpoint){.address = addresses[i], .port = ask->port};
    else
      worst = verdict;
  }
  if (surviving > 0) {
    dial(ask, survivors, surviving);
    return;
  }
  ask->address_class = worst.address_class;
  if (worst.rule)
    ask->rule = worst.rule;
  decided(ask, worst.reason);
}

static void resolve(struct ask *ask)
{
  struct egress *egress = ask->egress;
  ask->lookup = lookup_start(egress->lookups, supervisor_resolver(egress->supervisor), ask->host.text, resolved, ask);
  if (!ask->lookup)
    decided(ask, REASON_LIMIT_REACHED);
}

static void judge(struct ask *ask)
{
  struct egress *egress = ask->egress;
  /* Nothing is looked up or dialled for what could not be recorded; the refusal's own record shows when it can be. */
  if (audit_is_broken(egress->set.audit)) {
    decided(ask, REASON_AUDIT_UNAVAILABLE);
    return;
  }
  struct verdict verdict =
    decide_host(ask->client.listener->policy, &ask->host, ask->port, listeners_own(egress->set.listeners));
  ask->rule = verdict.rule;
  ask->address_class = verdict.address_class;
  if (verdict.reason != REASON_NONE) {
    decided(ask, verdict.reason);
    return;
  }
  ask->allowed_by = verdict.rule;
  if (ask->host.kind == HOST_ADDRESS)
    dial(ask, &(struct endpoint){.address = ask->host.address, .port = ask->port}, 1);
  else
    resolve(ask);
}

static const char *check_ask(struct egress *egress, struct child *worker, const struct msg_ask_egress *message,
                             struct host *ret_host)
{
  if (message->port == 0)
    return "an ask with port 0";
  if (message->ask == 0)
    return "an ask without an id";
  if (host_parse_canonical(message->host, ret_host) < 0)
    return "an ask for a host that is malformed or not canonical";
  if (egress->in_flight[child_index(worker)] >= WORKER_CREDIT)
    return "more asks than its credit";
  if (find(egress, worker, message->ask))
    return "an ask whose id is in flight";
  return NULL;
}

const char *answer_egress(struct egress *egress, struct child *worker, const struct msg_ask_egress *message, int client)
{
  struct host host;
  const char *wrong = check_ask(egress, worker, message, &host);
  if (wrong)
    return wrong;
  struct client read = {.listener = &egress->set.config->egress[0]};
  enum client_result result = CLIENT_READ;
  if (client >= 0)
    result = client_read(client, egress->set.config, &read, &wrong);
  if (result == CLIENT_FOREIGN)
    return wrong;
  struct ask *ask = calloc(1, sizeof *ask);
  if (!ask)
    return "memory ran out while it asked"; /* there is nothing to answer it with */
  *ask = (struct ask){.egress = egress,
                      .worker = worker,
                      .id = message->ask,
                      .session = egress->next_session++,
                      .client = read,
                      .host = host,
                      .port = message->port,
                      .holds_credit = true,
                      .descriptor = -1};
  egress->asks++;
  egress->in_flight[child_index(worker)]++;
  ask_enter(ask);
  if (client < 0)
    decided(ask, REASON_LIMIT_REACHED); /* descriptors ran out here: not the worker's fault */
  else if (result == CLIENT_GONE)
    decided(ask, REASON_CLIENT_GONE);
  else
    judge(ask);
  return NULL;
}

/* The worker's credit is free from here on, also when the answer is decided and only waits for this round's records: it
   then goes out late, which is normal. */
const char *egress_abandon(struct egress *egress, struct child *worker, const struct msg_abandon *abandon)
{
  struct ask *ask = find(egress, worker, abandon->ask);
  if (!ask)
    return NULL; /* answered meanwhile */
  ask_release_credit(ask);
  if (ask->is_decided)
    return NULL;
  egress_record_abandoned(ask);
  ask_free(ask);
  return NULL;
}

const char *egress_session_closed(struct egress *egress, struct child *worker, const struct msg_session_closed *closed)
{
  struct grant *grant = books_find(egress->books, closed->session);
  if (!grant || grant->child != worker)
    return "it closes a session that it was not granted";
  if (closed->ending >= ENDING_COUNT || closed->ending == ENDING_WORKER_DIED)
    return "an ending that does not exist";
  egress_record_end(egress, grant, (enum ending)closed->ending, closed->bytes_up, closed->bytes_down);
  books_strike(egress->books, grant);
  return NULL;
}

static bool workers_own_reason(uint16_t reason)
{
  switch (reason) {
  case REASON_BAD_REQUEST:
  case REASON_HEAD_TOO_LARGE:
  case REASON_REQUEST_TIMEOUT:
  case REASON_METHOD_NOT_ALLOWED:
  case REASON_CLIENT_GONE:
    return true;
  default:
    return false;
  }
}

const char *egress_worker_refused(struct egress *egress, struct child *worker, const struct msg_worker_refused *refused,
                                  int client)
{
  if (!workers_own_reason(refused->reason))
    return "a refusal that is not a worker's to make";
  struct client read = {.listener = &egress->set.config->egress[0]};
  const char *wrong = NULL;
  if (client >= 0 && client_read(client, egress->set.config, &read, &wrong) == CLIENT_FOREIGN)
    return wrong;
  egress_record_worker_refused(egress, worker, &read, (enum reason)refused->reason);
  return NULL;
}

const char *egress_lookup_answer(struct egress *egress, const struct msg_lookup_answer *answer)
{
  return lookups_answer(egress->lookups, answer);
}

void egress_resolver_ready(struct egress *egress, struct child *resolver)
{
  lookups_resolver_ready(egress->lookups, resolver);
}

static void drop_asks_of(struct ask_list *list, const struct child *worker)
{
  for (struct ask *ask = list->first, *next; ask; ask = next) {
    next = ask->next;
    if (ask->worker == worker)
      ask_free(ask);
  }
}

static void end_of_dead(const struct grant *grant, void *context)
{
  egress_record_end(context, grant, ENDING_WORKER_DIED, 0, 0);
}

void egress_worker_down(struct egress *egress, struct child *worker)
{
  drop_asks_of(&egress->open, worker);
  drop_asks_of(&egress->decided, worker);
  egress->in_flight[child_index(worker)] = 0;
  books_strike_child(egress->books, worker, end_of_dead, egress);
}

void egress_flush(struct egress *egress)
{
  for (const struct ask *ask = egress->decided.first; ask; ask = ask->next)
    egress_record(ask);
  bool recorded = audit_commit(egress->set.audit);
  /* An answer can find its worker broken and drop the worker's other asks: always the first is taken, out of the list.
   */
  while (egress->decided.first) {
    struct ask *ask = egress->decided.first;
    ask_strike(ask);
    egress_answer(ask, recorded);
    ask_release(ask);
  }
}

size_t egress_grants(const struct egress *egress)
{
  return books_count(egress->books);
}

size_t egress_asks(const struct egress *egress)
{
  return egress->asks;
}
