#include <errno.h>
#include <string.h>

#include "parent/child.h"
#include "parent/child_check.h"
#include "shared/channel.h"
#include "shared/descriptors.h"
#include "shared/log.h"

/* More can only wait when the child asks beyond its credit. */
#define CHILD_QUEUE_MAX (4 * WORKER_CREDIT + LISTENERS_MAX)

static enum link link_of(const struct child *child)
{
  return child->role == ROLE_WORKER ? LINK_WORKER : LINK_RESOLVER;
}

void child_unlink(struct child *child)
{
  if (child->channel < 0)
    return;
  event_del(child->readable);
  event_del(child->writable);
  event_del(child->ready_timer);
  event_del(child->stalled_timer);
  descriptor_close(&child->channel);
  child_queue_clear(&child->queue);
  child->supervisor->set.handler->down(child->supervisor->set.context, child);
}

void child_misbehaved(struct child *child, const char *why)
{
  if (child->channel < 0)
    return;
  log_error("%s (pid %d) broke the rules of its channel: %s; killed and replaced", child->title + strlen("sallyport: "),
            (int)child->pid, why);
  struct audit *audit = child->supervisor->set.audit;
  audit_line_begin(audit, AUDIT_REPORT, "child-killed");
  audit_text(audit, "child", child->title + strlen("sallyport: "));
  audit_number(audit, "pid", (uint64_t)child->pid);
  audit_text(audit, "why", why);
  audit_line_end(audit);
  child_kill(child);
}

static const char *take_ready(struct child *child, const struct msg_ready *ready)
{
  struct supervisor *s = child->supervisor;
  const char *wrong = child_check(child->pid, s->set.uid, ready->steps_waived, s->set.config->confinement);
  if (wrong)
    return wrong;
  event_del(child->ready_timer);
  child->state = LINK_RUNNING;
  child->done = ready->steps_done;
  child->waived = ready->steps_waived;
  if (!child->was_ready) {
    child->was_ready = true;
    s->waiting_ready--;
    s->starting = s->waiting_ready > 0;
  }
  s->set.handler->ready(s->set.context, child);
  return NULL;
}

/* False: stop reading for now. */
static bool receive_one(struct child *child)
{
  union message message;
  cleanup_fd int descriptor = -1;
  const char *wrong = NULL;
  enum channel_result result =
    channel_receive(child->channel, link_of(child), TO_PARENT, &message, &descriptor, &wrong);
  if (result == CHANNEL_EMPTY)
    return false;
  if (result == CHANNEL_CLOSED) {
    /* Its end, or a zero-length packet: either way there is nothing more to say to it. */
    child_kill(child);
    return false;
  }
  if (result != CHANNEL_WRONG && !message_allowed(message.type, child->state))
    wrong = "a message that its state does not allow";
  if (!wrong && message.type == MSG_READY)
    wrong = take_ready(child, &message.READY);
  else if (!wrong)
    wrong = child->supervisor->set.handler->message(child->supervisor->set.context, child, &message, &descriptor,
                                                    result == CHANNEL_DESCRIPTOR_LOST);
  if (wrong)
    child_misbehaved(child, wrong);
  /* A child that does not read its answers gets no further questions answered. */
  return child->channel >= 0 && !child->queue.first;
}

void child_readable(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct child *child = argument;
  for (int i = 0; i < MESSAGES_PER_WAKEUP; i++)
    if (!receive_one(child))
      return;
}

static void wait_for_reader(struct child *child)
{
  static const struct timeval stalled = {.tv_sec = CHILD_STALLED_MS / 1000};
  event_del(child->readable);
  event_add(child->writable, NULL);
  if (!event_pending(child->stalled_timer, EV_TIMEOUT, NULL))
    event_add(child->stalled_timer, &stalled);
}

void child_writable(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct child *child = argument;
  int sent = child_queue_send(&child->queue, child->channel);
  if (sent == -EAGAIN)
    return;
  if (sent < 0) {
    child_kill(child);
    return;
  }
  event_del(child->writable);
  event_del(child->stalled_timer);
  event_add(child->readable, NULL);
}

void child_send(struct child *child, const void *message, int descriptor)
{
  cleanup_fd int owned = descriptor;
  if (child->channel < 0)
    return;
  int sent = child->queue.first ? -EAGAIN : channel_send(child->channel, message, descriptor);
  if (sent == 0)
    return;
  if (sent != -EAGAIN && sent != -ETOOMANYREFS) {
    /* The end is seen by the read event too; killing here would pull the child away under its caller. */
    log_debug("%s: send: %s", child->title, strerror(-sent));
    return;
  }
  if (child->queue.length >= CHILD_QUEUE_MAX || child_queue_add(&child->queue, message, steal_fd(&owned)) < 0) {
    child_misbehaved(child, "it does not read what it asked for");
    return;
  }
  wait_for_reader(child);
}
