#include "child/worker/tunnel.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "child/worker/answer.h"
#include "child/worker/relay.h"
#include "shared/log.h"

struct way { /* one direction with its ends */
  struct flow *flow;
  struct side *source;
  struct side *sink;
  enum counter counter;
};

static struct way way_from(struct session *session, const struct side *source)
{
  if (source == &session->client)
    return (struct way){&session->up, &session->client, &session->upstream, COUNTER_BYTES_UP};
  return (struct way){&session->down, &session->upstream, &session->client, COUNTER_BYTES_DOWN};
}

static void failed(struct session *session, const struct side *side, int error)
{
  enum ending ending = ENDING_ERROR;
  if (error == ECONNRESET || error == EPIPE)
    ending = side == &session->client ? ENDING_CLIENT_RESET : ENDING_UPSTREAM_RESET;
  else if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH)
    ending = ENDING_DEAD_PEER;
  session_end(session, ending);
}

/* A peer that has reset may have said something before, and it is in our buffer still: an early answer to an upload
   that was too large, say. It is handed on, as far as the other side takes it at once. */
static void take_last_words(struct session *session, const struct side *broken)
{
  struct way way = way_from(session, broken);
  enum relay_result result = RELAY_FINE;
  uint64_t before = way.flow->bytes - 1;
  int error;
  for (int i = 0; i < RELAY_LAST_READS_MAX && result == RELAY_FINE && !way.flow->ended && way.flow->bytes != before;
       i++) {
    before = way.flow->bytes;
    result = relay_read(session->worker, way.flow, way.source->fd, way.sink->fd, &error);
  }
}

/* Moves bytes one way. False: the session has ended. */
static bool move(struct session *session, struct way way,
                 enum relay_result (*step)(struct worker *, const struct way *, int *))
{
  uint64_t before = way.flow->bytes;
  int error = 0;
  enum relay_result result = step(session->worker, &way, &error);
  counter_add(session->worker->counters, way.counter, way.flow->bytes - before);
  if (result == RELAY_FINE)
    return true;
  const struct side *broken = result == RELAY_SINK_FAILED ? way.sink : way.source;
  if (result == RELAY_SINK_FAILED && (error == ECONNRESET || error == EPIPE))
    take_last_words(session, broken);
  failed(session, broken, error);
  return false;
}

static enum relay_result step_read(struct worker *worker, const struct way *way, int *ret_error)
{
  return relay_read(worker, way->flow, way->source->fd, way->sink->fd, ret_error);
}

static enum relay_result step_flush(struct worker *worker, const struct way *way, int *ret_error)
{
  return relay_flush(worker, way->flow, way->sink->fd, ret_error);
}

/* Passes an end of stream on, once all bytes before it are out. False: the session has ended. */
static bool pass_on_end(struct session *session, struct way way, const struct flow *other)
{
  if (!way.flow->ended || way.flow->passed_on || relay_blocked(way.flow))
    return true;
  way.flow->passed_on = true;
  /* When the other direction is over too, the close that follows says it. */
  if (!other->passed_on && shutdown(way.sink->fd, SHUT_WR) < 0) {
    failed(session, way.sink, ECONNRESET);
    return false;
  }
  return true;
}

static short wanted(const struct flow *from, const struct flow *to)
{
  short read = from->ended || relay_blocked(from) ? 0 : EV_READ;
  return (short)(read | (relay_blocked(to) ? EV_WRITE : 0));
}

/* A side that is not watched, because its stream has ended or its sink is full, does not tell of its reset: level-
   triggered events would not stop telling of its bytes or its end. So it is looked at from time to time. */
static bool needs_looks(const struct session *session)
{
  return !session->client.watching || !session->upstream.watching;
}

static void rest_or_end(struct session *session)
{
  struct worker *worker = session->worker;
  struct flow *up = &session->up;
  struct flow *down = &session->down;
  if (!pass_on_end(session, way_from(session, &session->client), down) ||
      !pass_on_end(session, way_from(session, &session->upstream), up))
    return;
  if (up->passed_on && down->passed_on) {
    session_end(session, ENDING_FINISHED);
    return;
  }
  session_watch(session, &session->client, wanted(up, down));
  if (session->state == SESSION_ENDED)
    return;
  session_watch(session, &session->upstream, wanted(down, up));
  if (session->state == SESSION_ENDED)
    return;
  session->active_ms = worker_now_ms(worker);
  if (session->deadline.kind != DEADLINE_LOOK)
    deadline_set(worker->deadlines, &session->deadline, needs_looks(session) ? DEADLINE_LOOK : DEADLINE_IDLE,
                 session->active_ms);
}

void tunnel_start(struct session *session)
{
  if (!answer_client(session, &(struct answer){.reason = REASON_NONE}))
    return;
  session_set_state(session, SESSION_TUNNEL);
  if (session->up.rest && !move(session, way_from(session, &session->client), step_flush))
    return;
  rest_or_end(session);
}

static void ready(struct session *session, struct side *side, struct side *other, short what)
{
  if (what & EV_WRITE && !move(session, way_from(session, other), step_flush))
    return;
  /* An event for both may be an error on this side alone: the source is read even while its sink blocks nothing. */
  struct way way = way_from(session, side);
  if (what & EV_READ && !way.flow->ended && !relay_blocked(way.flow) && !move(session, way, step_read))
    return;
  rest_or_end(session);
}

void tunnel_client_ready(struct session *session, short what)
{
  ready(session, &session->client, &session->upstream, what);
}

void tunnel_upstream_ready(struct session *session, short what)
{
  ready(session, &session->upstream, &session->client, what);
}

/* Not POLLHUP: two ends of stream without any error show as that too. */
static bool was_reset(const struct side *side)
{
  struct pollfd look = {.fd = side->fd};
  return !side->watching && poll(&look, 1, 0) > 0 && look.revents & POLLERR;
}

void tunnel_expired(struct session *session)
{
  struct worker *worker = session->worker;
  bool half_open = session->up.ended || session->down.ended;
  uint32_t idle_ms = half_open ? worker->settings.half_open_idle_ms : worker->settings.tunnel_idle_ms;
  uint64_t now_ms = worker_now_ms(worker);
  if (now_ms - session->active_ms >= idle_ms)
    session_end(session, half_open ? ENDING_HALF_OPEN : ENDING_IDLE);
  else if (was_reset(&session->client))
    failed(session, &session->client, ECONNRESET);
  else if (was_reset(&session->upstream))
    failed(session, &session->upstream, ECONNRESET);
  else
    deadline_set(worker->deadlines, &session->deadline, needs_looks(session) ? DEADLINE_LOOK : DEADLINE_IDLE, now_ms);
}
