#include "child/worker/accept.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "child/worker/ask.h"
#include "child/worker/egress_connect.h"
#include "child/worker/session.h"
#include "shared/log.h"

enum listener_state { LISTENER_STOPPED, LISTENER_ACCEPTING, LISTENER_PAUSED };

struct listener {
  struct event event;
  struct listeners *all;
  enum listener_state state;
  uint32_t sessions;
  uint64_t last_turn; /* in which it had a client */
  unsigned batch;
};

struct listeners {
  struct worker *worker;
  struct listener listeners[LISTENERS_MAX];
  size_t used;   /* those from here on were never added */
  bool shortage; /* descriptors or memory: until a session ends or the retry comes */
  struct event *retry;
};

static int descriptor_of(const struct listener *listener)
{
  return CHILD_LISTENER_FD_FIRST + (int)(listener - listener->all->listeners);
}

static bool has_room(const struct listener *listener)
{
  return !listener->all->shortage && listener->sessions < listener->all->worker->settings.sessions_max;
}

static bool may_accept(const struct listener *listener)
{
  const struct worker *worker = listener->all->worker;
  return has_room(listener) && worker->session_count < worker->sessions_fit && ask_possible(worker);
}

static void pause_accepting(struct listener *listener)
{
  event_del(&listener->event);
  listener->state = LISTENER_PAUSED;
  counter_add(listener->all->worker->counters, COUNTER_ACCEPT_PAUSES, 1);
}

/* The descriptor stays open: its number must not become a session's, which the filter would not let be shut down. */
static void stop(struct listener *listener)
{
  if (listener->state == LISTENER_ACCEPTING)
    event_del(&listener->event);
  listener->state = LISTENER_STOPPED;
}

static void run_short(struct listeners *listeners, int error)
{
  static const struct timeval pause = {.tv_usec = ACCEPT_RETRY_MS * 1000};
  log_warning("accepting pauses: %s", strerror(error));
  listeners->shortage = true;
  event_add(listeners->retry, &pause);
}

static void accept_failed(struct listener *listener, int error)
{
  switch (error) {
  case EMFILE:
  case ENFILE:
  case ENOBUFS:
  case ENOMEM:
    run_short(listener->all, error);
    break;
  case EINVAL: /* the parent has shut it down */
  case EBADF:
    log_info("a listener was shut down");
    stop(listener);
    break;
  default:
    break; /* nobody there any more, or an error of one connection only, accept(2) */
  }
}

/* False: no client to be had now. */
static bool accept_one(struct listener *listener)
{
  struct worker *worker = listener->all->worker;
  int client = accept4(descriptor_of(listener), NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client < 0) {
    accept_failed(listener, errno);
    return false;
  }
  counter_add(worker->counters, COUNTER_ACCEPTED, 1);
  struct session *session = session_new(worker, client, (uint8_t)(listener - listener->all->listeners));
  if (!session) {
    run_short(listener->all, ENOMEM);
    return false;
  }
  listener->sessions++;
  egress_connect_read(session, 0);
  return true;
}

/* One client for a listener that was quiet, because asking for a second one would be in vain; more and more for one
   that has clients turn after turn. */
static unsigned batch_size(struct listener *listener)
{
  const struct worker *worker = listener->all->worker;
  bool busy = listener->last_turn + 1 == worker->turn;
  listener->last_turn = worker->turn;
  listener->batch = !busy ? 1 : listener->batch * 2 > ACCEPTS_PER_WAKEUP ? ACCEPTS_PER_WAKEUP : listener->batch * 2;
  return listener->batch;
}

/* The kernel has woken this worker alone: whom it leaves in the queue, nobody is woken for again. So the first one is
   taken even if this very turn has used up the last credit or the last planned descriptor; there are spare ones. */
static void accept_ready(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct listener *listener = argument;
  unsigned batch = batch_size(listener);
  for (unsigned i = 0; i < batch && (i == 0 ? has_room(listener) : may_accept(listener)); i++)
    if (!accept_one(listener))
      break;
  if (listener->state == LISTENER_ACCEPTING && !may_accept(listener))
    pause_accepting(listener);
}

static void retry(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct listeners *listeners = argument;
  listeners->shortage = false; /* listeners_adjust follows in this turn */
}

struct listeners *listeners_new(struct worker *worker)
{
  struct listeners *listeners = calloc(1, sizeof *listeners);
  if (!listeners)
    return NULL;
  listeners->worker = worker;
  for (size_t i = 0; i < LISTENERS_MAX; i++)
    listeners->listeners[i].all = listeners;
  listeners->retry = evtimer_new(worker->base, retry, listeners);
  if (!listeners->retry) {
    free(listeners);
    return NULL;
  }
  return listeners;
}

void listeners_free(struct listeners *listeners)
{
  if (!listeners)
    return;
  listeners_stop(listeners);
  event_free(listeners->retry);
  free(listeners);
}

int listeners_add(struct listeners *listeners, int descriptor)
{
  if (descriptor < CHILD_LISTENER_FD_FIRST || descriptor >= CHILD_LISTENER_FD_END)
    return -EINVAL;
  size_t index = (size_t)(descriptor - CHILD_LISTENER_FD_FIRST);
  struct listener *listener = &listeners->listeners[index];
  if (listener->state != LISTENER_STOPPED)
    return 0;
  if (event_assign(&listener->event, listeners->worker->base, descriptor, EV_READ | EV_PERSIST, accept_ready,
                   listener) < 0 ||
      loop_add_exclusive(&listeners->worker->loop, &listener->event) < 0)
    return -EBADF;
  listener->state = LISTENER_ACCEPTING;
  if (listeners->used <= index)
    listeners->used = index + 1;
  return 0;
}

void listeners_session_ended(struct listeners *listeners, uint8_t listener)
{
  listeners->listeners[listener].sessions--;
  listeners->shortage = false;
}

void listeners_adjust(struct listeners *listeners)
{
  for (size_t i = 0; i < listeners->used; i++) {
    struct listener *listener = &listeners->listeners[i];
    if (listener->state == LISTENER_ACCEPTING && !may_accept(listener))
      pause_accepting(listener);
    else if (listener->state == LISTENER_PAUSED && may_accept(listener) &&
             loop_add_exclusive(&listeners->worker->loop, &listener->event) == 0)
      listener->state = LISTENER_ACCEPTING;
  }
}

void listeners_stop(struct listeners *listeners)
{
  for (size_t i = 0; i < listeners->used; i++)
    stop(&listeners->listeners[i]);
}
