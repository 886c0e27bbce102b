#include "child/resolver/question.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "child/resolver/query_sockets.h"
#include "shared/text.h"

struct question {
  struct question_pool *pool;
  struct question *next_idle;
  ares_channel channel;
  struct query_sockets *sockets;
  struct event *timer;
  unsigned servers; /* that the channel knows */
  bool asked;
  bool done; /* the answer is here; it is handed on when c-ares has returned */
  unsigned family;
  char name[HOST_TEXT_SIZE];
  struct answer answer;
  question_answered *answered;
  void *arg;
};

struct question_pool {
  unsigned servers;
  size_t count;
  size_t idle_count;
  struct question *idle;
  struct question questions[];
};

static void to_idle(struct question *question)
{
  question->asked = false;
  evtimer_del(question->timer);
  question->next_idle = question->pool->idle;
  question->pool->idle = question;
  question->pool->idle_count++;
}

/* After every call into c-ares: hands the answer on, or sees to the next retry. */
static void settle(struct question *question)
{
  if (!question->asked)
    return;
  if (question->done) {
    struct answer answer = question->answer;
    to_idle(question);
    question->answered(question->arg, &answer);
    return;
  }
  struct timeval left;
  struct timeval *next = ares_timeout(question->channel, NULL, &left);
  if (next)
    evtimer_add(question->timer, next);
}

static void sockets_ready(void *arg, ares_socket_t readable, ares_socket_t writable)
{
  struct question *question = arg;
  ares_process_fd(question->channel, readable, writable);
  settle(question);
}

static void timer_fired(evutil_socket_t fd, short what, void *arg)
{
  (void)fd;
  (void)what;
  sockets_ready(arg, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static void c_ares_answered(void *arg, int status, int timeouts, unsigned char *packet, int length)
{
  (void)timeouts;
  struct question *question = arg;
  question->done = true;
  if (packet && length > 0 && (status == ARES_SUCCESS || status == ARES_ENODATA || status == ARES_ENOTFOUND))
    answer_read(packet, (size_t)length, question->name, question->family, &question->answer);
  else
    question->answer = (struct answer){.status = status == ARES_ETIMEOUT ? LOOKUP_TIMED_OUT : LOOKUP_FAILED};
}

struct question *question_ask(struct question_pool *pool, const char *name, unsigned family,
                              question_answered *answered, void *arg)
{
  struct question *question = pool->idle;
  if (!question)
    return NULL;
  pool->idle = question->next_idle;
  pool->idle_count--;
  question->asked = true;
  question->done = false;
  question->family = family;
  question->answered = answered;
  question->arg = arg;
  bool fits = text_fill(question->name, sizeof question->name, name);
  if (fits && question->servers != pool->servers &&
      query_sockets_set_servers(question->channel, pool->servers) == ARES_SUCCESS)
    question->servers = pool->servers;
  if (fits && question->servers == pool->servers && pool->servers > 0)
    ares_query(question->channel, question->name, ns_c_in, family == 4 ? ns_t_a : ns_t_aaaa, c_ares_answered, question);
  else
    c_ares_answered(question, ARES_ECONNREFUSED, 0, NULL, 0);
  if (question->done)
    event_active(question->timer, EV_TIMEOUT, 0);
  else
    settle(question);
  return question;
}

void question_cancel(struct question *question)
{
  ares_cancel(question->channel);
  to_idle(question);
}

static int make_channel(struct question *question)
{
  /* Everything is given, so that c-ares reads no file: not resolv.conf, not hosts, not nsswitch.conf. */
  char lookups[] = "b";
  struct ares_options options = {
    .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
    .timeout = RESOLVER_TRY_MS,
    .tries = RESOLVER_TRIES,
    .ndots = 1,
    .lookups = lookups,
    .sock_state_cb = query_sockets_state,
    .sock_state_cb_data = question->sockets,
  };
  int given = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS | ARES_OPT_LOOKUPS |
              ARES_OPT_SOCK_STATE_CB | ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_SORTLIST | ARES_OPT_NOROTATE;
  int status = ares_init_options(&question->channel, &options, given);
  if (status != ARES_SUCCESS)
    return status == ARES_ENOMEM ? -ENOMEM : -EIO;
  query_sockets_install(question->sockets, question->channel);
  return query_sockets_set_servers(question->channel, 0) == ARES_SUCCESS ? 0 : -EIO;
}

static int make_question(struct question_pool *pool, struct question *question, struct event_base *base,
                         struct socket_supply *supply)
{
  question->pool = pool;
  question->timer = evtimer_new(base, timer_fired, question);
  if (!question->timer)
    return -ENOMEM;
  int result = query_sockets_new(base, supply, sockets_ready, question, &question->sockets);
  return result < 0 ? result : make_channel(question);
}

int question_pool_new(struct event_base *base, struct socket_supply *supply, size_t channels,
                      struct question_pool **ret)
{
  struct question_pool *pool = calloc(1, sizeof *pool + channels * sizeof(struct question));
  if (!pool)
    return -ENOMEM;
  pool->count = channels;
  for (size_t i = 0; i < channels; i++) {
    int result = make_question(pool, &pool->questions[i], base, supply);
    if (result < 0) {
      question_pool_free(pool);
      return result;
    }
    to_idle(&pool->questions[i]);
  }
  *ret = pool;
  return 0;
}

void question_pool_free(struct question_pool *pool)
{
  if (!pool)
    return;
  for (size_t i = 0; i < pool->count; i++) {
    struct question *question = &pool->questions[i];
    question->asked = false;
    if (question->channel)
      ares_destroy(question->channel);
    query_sockets_free(question->sockets);
    if (question->timer)
      event_free(question->timer);
  }
  free(pool);
}

void question_pool_set_servers(struct question_pool *pool, unsigned servers)
{
  pool->servers = servers;
}

size_t question_pool_idle(const struct question_pool *pool)
{
  return pool->idle_count;
}
