#include "child/worker/session.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "child/worker/accept.h"
#include "child/worker/ask.h"
#include "child/worker/egress_connect.h"
#include "child/worker/linger.h"
#include "child/worker/outbox.h"
#include "child/worker/refuse.h"
#include "child/worker/relay.h"
#include "child/worker/tunnel.h"
#include "shared/descriptors.h"
#include "shared/log.h"

#define BIT(state) (1U << SESSION_##state)

/* Per state: its name, what may follow it, and who handles the client's readiness and the deadline. A state without a
   handler watches nothing or has no deadline of its own. */
static const struct {
  const char *name;
  unsigned next;
  void (*client_ready)(struct session *session, short what);
  void (*expired)(struct session *session);
} states[SESSION_STATE_COUNT] = {
  [SESSION_HEAD] = {"head", BIT(WAITING) | BIT(STARVED) | BIT(ASKING) | BIT(RECORDING) | BIT(LINGER) | BIT(ENDED),
                    egress_connect_read, egress_connect_head_expired},
  [SESSION_WAITING] = {"waiting", BIT(HEAD) | BIT(RECORDING) | BIT(LINGER) | BIT(ENDED), NULL,
                       egress_connect_head_expired},
  [SESSION_STARVED] = {"starved", BIT(HEAD) | BIT(RECORDING) | BIT(LINGER) | BIT(ENDED), NULL,
                       egress_connect_head_expired},
  [SESSION_ASKING] = {"asking", BIT(TUNNEL) | BIT(LINGER) | BIT(ENDED), egress_connect_capture,
                      egress_connect_answer_expired},
  [SESSION_RECORDING] = {"recording", BIT(LINGER) | BIT(ENDED), NULL, refuse_expired},
  [SESSION_TUNNEL] = {"tunnel", BIT(ENDED), tunnel_client_ready, tunnel_expired},
  [SESSION_LINGER] = {"linger", BIT(ENDED), linger_read, linger_expired},
  [SESSION_ENDED] = {"ended", 0, NULL, NULL},
};

/* Endings after which a peer must not take what it got for the whole: they are passed on as a reset. */
static const bool resets[ENDING_COUNT] = {
  [ENDING_CLIENT_RESET] = true, [ENDING_UPSTREAM_RESET] = true, [ENDING_IDLE] = true, [ENDING_HALF_OPEN] = true,
  [ENDING_DEAD_PEER] = true,    [ENDING_CAPTURE_CAP] = true,    [ENDING_CUT] = true,  [ENDING_ERROR] = true,
};

struct session *session_new(struct worker *worker, int client, uint8_t listener)
{
  struct session *session = calloc(1, sizeof *session);
  if (!session) {
    close(client);
    return NULL;
  }
  session->worker = worker;
  session->client.fd = client;
  session->upstream.fd = -1;
  session->listener = listener;
  session->state = SESSION_HEAD;
  session->next = worker->sessions;
  if (worker->sessions)
    worker->sessions->previous = session;
  worker->sessions = session;
  worker->session_count++;
  counter_add(worker->counters, COUNTER_SESSIONS_OPEN, 1);
  deadline_set(worker->deadlines, &session->deadline, DEADLINE_HEAD, worker_now_ms(worker));
  return session;
}

static void enqueue(struct session_queue *queue, struct session *session)
{
  session->next_queued = NULL;
  if (queue->last)
    queue->last->next_queued = session;
  else
    queue->first = session;
  queue->last = session;
}

static void unqueue(struct session_queue *queue, struct session *session)
{
  struct session *before = NULL;
  struct session *each = queue->first;
  for (; each && each != session; each = each->next_queued)
    before = each;
  if (!each)
    return;
  *(before ? &before->next_queued : &queue->first) = session->next_queued;
  if (queue->last == session)
    queue->last = before;
  session->next_queued = NULL;
}

/* The queue that a session is in while it is in its state, or NULL. */
static struct session_queue *queue_of(const struct session *session)
{
  switch (session->state) {
  case SESSION_WAITING:
    return &session->worker->waiting;
  case SESSION_STARVED:
    return &session->worker->starved;
  case SESSION_RECORDING:
    return &session->worker->recording;
  default:
    return NULL;
  }
}

void session_set_state(struct session *session, enum session_state state)
{
  if (!(states[session->state].next & 1U << state)) {
    log_error("a session went from %s to %s", states[session->state].name, states[state].name);
    worker_finish(session->worker, 1);
  }
  if (queue_of(session))
    unqueue(queue_of(session), session);
  if (session->state == SESSION_TUNNEL)
    counter_add(session->worker->counters, COUNTER_TUNNELS_OPEN, (uint64_t)-1);
  session->state = (uint8_t)state;
  if (queue_of(session))
    enqueue(queue_of(session), session);
  if (state == SESSION_TUNNEL)
    counter_add(session->worker->counters, COUNTER_TUNNELS_OPEN, 1);
}

static void client_ready(evutil_socket_t fd, short what, void *argument)
{
  (void)fd;
  struct session *session = argument;
  if (states[session->state].client_ready)
    states[session->state].client_ready(session, what);
}

static void upstream_ready(evutil_socket_t fd, short what, void *argument)
{
  (void)fd;
  tunnel_upstream_ready(argument, what);
}

void session_watch(struct session *session, struct side *side, short events)
{
  if (side->watching == events)
    return;
  if (side->watching)
    event_del(&side->event);
  side->watching = 0;
  if (!events)
    return;
  event_callback_fn ready = side == &session->client ? client_ready : upstream_ready;
  if (event_assign(&side->event, session->worker->base, side->fd, (short)(events | EV_PERSIST), ready, session) < 0 ||
      event_add(&side->event, NULL) < 0) {
    log_error("a connection cannot be watched");
    session_end(session, ENDING_ERROR);
    return;
  }
  side->watching = events;
}

void session_expired(struct deadline *deadline, uint64_t now_ms, void *context)
{
  struct worker *worker = context;
  struct session *session = (struct session *)(void *)deadline;
  worker->now_ms = now_ms;
  if (states[session->state].expired)
    states[session->state].expired(session);
}

void session_report_closed(struct session *session, enum ending ending)
{
  struct worker *worker = session->worker;
  struct msg_session_closed closed = {.type = MSG_SESSION_CLOSED,
                                      .ending = (uint16_t)ending,
                                      .session = session->id,
                                      .bytes_up = session->up.bytes,
                                      .bytes_down = session->down.bytes};
  session->id = 0;
  outbox_send_later(worker->outbox, &closed);
}

static void close_side(struct side *side, bool reset)
{
  if (side->fd < 0)
    return;
  /* The parent may still have the client's descriptor in a message, and epoll watches until the last one is closed: so
     the event goes first, always. */
  if (side->watching)
    event_del(&side->event);
  side->watching = 0;
  if (reset)
    (void)setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
  descriptor_close(&side->fd);
}

static void unlink_session(struct session *session)
{
  struct worker *worker = session->worker;
  if (session->previous)
    session->previous->next = session->next;
  else
    worker->sessions = session->next;
  if (session->next)
    session->next->previous = session->previous;
  worker->session_count--;
}

void session_end(struct session *session, enum ending ending)
{
  struct worker *worker = session->worker;
  if (session->state == SESSION_ENDED)
    return;
  log_debug("session ends in state %s: %s, %llu bytes up, %llu down", states[session->state].name, ending_id(ending),
            (unsigned long long)session->up.bytes, (unsigned long long)session->down.bytes);
  session_set_state(session, SESSION_ENDED);
  deadline_clear(&session->deadline);
  close_side(&session->client, resets[ending]);
  close_side(&session->upstream, resets[ending]);
  relay_release(worker, &session->up);
  relay_release(worker, &session->down);
  counter_add(worker->counters, COUNTER_SESSIONS_OPEN, (uint64_t)-1);
  /* Whoever reads these messages finds the session closed and counted. */
  if (session->ask)
    ask_abandon(session);
  if (session->id)
    session_report_closed(session, ending);
  unlink_session(session);
  listeners_session_ended(worker->listeners, session->listener);
  session->next_queued = worker->ended;
  worker->ended = session;
}

void sessions_free_ended(struct worker *worker)
{
  while (worker->ended) {
    struct session *session = worker->ended;
    worker->ended = session->next_queued;
    free(session);
  }
}
