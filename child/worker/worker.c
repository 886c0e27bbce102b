#include "child/worker/worker.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "child/worker/accept.h"
#include "child/worker/ask.h"
#include "child/worker/egress_connect.h"
#include "child/worker/outbox.h"
#include "child/worker/refuse.h"
#include "child/worker/session.h"
#include "shared/channel.h"
#include "shared/clock.h"
#include "shared/descriptors.h"
#include "shared/log.h"

/* A session has two descriptors, and the numbers below what is open now are taken. The limit is the parent's own, which
   confinement sets once more; behind the filter it cannot be asked for. */
static size_t sessions_that_fit(void)
{
  struct rlimit limit;
  int lowest_free = dup(STDERR_FILENO);
  if (lowest_free < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
    return SIZE_MAX;
  close(lowest_free);
  size_t taken = (size_t)lowest_free + WORKER_DESCRIPTORS_SPARE;
  return limit.rlim_cur <= taken ? 1 : (limit.rlim_cur - taken) / DESCRIPTORS_PER_SESSION;
}

struct worker *worker_new(const char *name, int channel, struct counters *counters)
{
  struct worker *worker = calloc(1, sizeof *worker);
  if (!worker)
    return NULL;
  worker->name = name;
  worker->channel = channel;
  worker->counters = counters;
  worker->state = LINK_STARTING;
  if (loop_new(&worker->loop) == 0)
    worker->base = worker->loop.base;
  worker->pipes = pipe_pool_new(RELAY_PIPES, RELAY_PIPE_BYTES, RELAY_PIPE_BYTES_MIN);
  worker->asks = asks_new();
  if (worker->base) {
    worker->deadlines = deadlines_new(worker->base, session_expired, worker);
    worker->outbox = outbox_new(worker);
    worker->listeners = listeners_new(worker);
  }
  if (!worker->deadlines || !worker->outbox || !worker->listeners || !worker->pipes || !worker->asks) {
    log_error("memory or descriptors ran out at the start");
    worker_free(worker);
    return NULL;
  }
  worker->sessions_fit = sessions_that_fit();
  if (pipe_pool_free_count(worker->pipes) < RELAY_PIPES)
    log_warning("only %u of %d pipes for bulk could be had in full size (fs.pipe-user-pages-soft)",
                pipe_pool_free_count(worker->pipes), RELAY_PIPES);
  if (worker->loop.epoll < 0)
    log_warning("the event loop's descriptor was not found: every worker wakes for every client");
  return worker;
}

void worker_free(struct worker *worker)
{
  worker->finished = true; /* nothing is sent any more */
  while (worker->sessions)
    session_end(worker->sessions, ENDING_CUT);
  sessions_free_ended(worker);
  listeners_free(worker->listeners);
  outbox_free(worker->outbox);
  asks_free(worker->asks);
  pipe_pool_free(worker->pipes);
  deadlines_free(worker->deadlines);
  if (worker->channel_event)
    event_free(worker->channel_event);
  if (worker->base)
    event_base_free(worker->base);
  free(worker);
}

void worker_finish(struct worker *worker, int exit_code)
{
  if (!worker->finished)
    worker->exit_code = exit_code;
  worker->finished = true;
}

uint64_t worker_now_ms(struct worker *worker)
{
  if (!worker->now_ms)
    worker->now_ms = clock_monotonic_ms();
  return worker->now_ms;
}

static bool settings_sound(const struct msg_worker_settings *s)
{
  return s->credit > 0 && s->head_timeout_ms > 0 && s->answer_timeout_ms > 0 && s->tunnel_idle_ms > 0 &&
         s->half_open_idle_ms > 0 && s->buffered_bytes > 0 && s->buffered_total_bytes > 0 && s->sessions_max > 0 &&
         s->log_level <= LOG_LEVEL_ERROR && s->log_json <= 1;
}

/* NULL, or what is wrong. */
static const char *take_settings(struct worker *worker, const struct msg_worker_settings *settings)
{
  if (!settings_sound(settings))
    return "settings with a value that cannot be";
  worker->settings = *settings;
  uint32_t look_ms = settings->half_open_idle_ms < TUNNEL_LOOK_MS ? settings->half_open_idle_ms : TUNNEL_LOOK_MS;
  deadlines_set_duration(worker->deadlines, DEADLINE_HEAD, settings->head_timeout_ms);
  deadlines_set_duration(worker->deadlines, DEADLINE_ANSWER, settings->answer_timeout_ms);
  deadlines_set_duration(worker->deadlines, DEADLINE_IDLE, settings->tunnel_idle_ms);
  deadlines_set_duration(worker->deadlines, DEADLINE_LOOK, look_ms);
  deadlines_set_duration(worker->deadlines, DEADLINE_LINGER, LINGER_MS);
  log_setup(worker->name, (enum log_level)settings->log_level, settings->log_json);
  return NULL;
}

static const char *take_listener(struct worker *worker, const struct msg_listener *listener)
{
  if (!worker->settings.type)
    return "a listener before the settings";
  return listeners_add(worker->listeners, listener->descriptor) == 0 ? NULL : "a listener that cannot be watched";
}

static const char *drain(struct worker *worker)
{
  worker->state = LINK_DRAINING;
  listeners_stop(worker->listeners);
  for (struct session *session = worker->sessions, *next; session; session = next) {
    next = session->next;
    if (session->state == SESSION_HEAD && !session->up.rest)
      session_end(session, ENDING_FINISHED);
  }
  return NULL;
}

/* The parent waits but a moment. */
static const char *cut_all(struct worker *worker)
{
  worker->state = LINK_DRAINING;
  listeners_stop(worker->listeners);
  while (worker->sessions)
    session_end(worker->sessions, ENDING_CUT);
  return NULL;
}

static const char *take_message(struct worker *worker, const union message *message, int *descriptor)
{
  if (!message_allowed(message->type, worker->state))
    return "a message that the state does not allow";
  switch (message->type) {
  case MSG_WORKER_SETTINGS:
    return take_settings(worker, &message->WORKER_SETTINGS);
  case MSG_LISTENER:
    return worker->state == LINK_DRAINING ? NULL : take_listener(worker, &message->LISTENER);
  case MSG_GRANT:
  case MSG_REFUSAL:
    ask_answered(worker, message, steal_fd(descriptor));
    return NULL;
  case MSG_DRAIN:
    return drain(worker);
  case MSG_END:
    return cut_all(worker);
  default:
    return "a message that is not a worker's";
  }
}

/* False: nothing more is there. */
static bool receive_one(struct worker *worker)
{
  static union message message;
  cleanup_fd int descriptor = -1;
  const char *wrong = NULL;
  switch (channel_receive(worker->channel, LINK_WORKER, TO_CHILD, &message, &descriptor, &wrong)) {
  case CHANNEL_EMPTY:
    return false;
  case CHANNEL_CLOSED:
    log_debug("the parent is gone");
    worker_finish(worker, 1);
    return false;
  case CHANNEL_WRONG:
    break;
  case CHANNEL_MESSAGE:
  case CHANNEL_DESCRIPTOR_LOST:
    wrong = take_message(worker, &message, &descriptor);
    break;
  }
  if (wrong) {
    log_error("the parent sent %s; the worker ends", wrong);
    worker_finish(worker, 1);
  }
  return !wrong;
}

static void channel_ready(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct worker *worker = argument;
  for (int i = 0; i < MESSAGES_PER_WAKEUP; i++)
    /* Where no answer is due, asking for another message would be in vain: if there is one, the loop says so. */
    if (!receive_one(worker) || asks_quiet(worker))
      return;
}

int worker_start(struct worker *worker)
{
  worker->state = LINK_RUNNING;
  worker->channel_event = event_new(worker->base, worker->channel, EV_READ | EV_PERSIST, channel_ready, worker);
  if (!worker->channel_event || event_add(worker->channel_event, NULL) < 0)
    return -1;
  return 0;
}

/* What callbacks leave for when nobody is in the middle of something. */
static void after_turn(struct worker *worker)
{
  ask_resume(worker);
  refuse_resume(worker);
  egress_connect_resume(worker);
  listeners_adjust(worker->listeners);
  sessions_free_ended(worker);
  if (worker->state == LINK_DRAINING && worker->session_count == 0) {
    outbox_send_now(worker->outbox);
    if (outbox_empty(worker->outbox))
      worker_finish(worker, 0);
  }
  worker->now_ms = 0;
  worker->turn++;
}

bool worker_turn(struct worker *worker, bool wait)
{
  if (!worker->finished && event_base_loop(worker->base, EVLOOP_ONCE | (wait ? 0 : EVLOOP_NONBLOCK)) < 0) {
    log_error("the event loop failed");
    worker_finish(worker, 1);
  }
  after_turn(worker);
  return !worker->finished;
}
