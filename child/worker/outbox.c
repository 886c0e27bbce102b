#include "child/worker/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/channel.h"
#include "shared/log.h"

union small_message { /* what may wait here */
  uint32_t type;
  struct msg_abandon abandon;
  struct msg_session_closed closed;
};

struct outbox {
  struct worker *worker;
  struct event *writable; /* pending exactly while the outbox is blocked */
  struct event *delay;    /* pending while only reports that may wait are queued */
  bool blocked;
  union small_message *ring;
  size_t size; /* of the ring, a power of two */
  size_t first;
  size_t count;
};

#define RING_FIRST 64

static void channel_lost(struct outbox *outbox, int error)
{
  log_debug("the channel to the parent is gone: %s", strerror(-error));
  worker_finish(outbox->worker, 1);
}

static void block(struct outbox *outbox)
{
  if (outbox->blocked)
    return;
  outbox->blocked = true;
  event_add(outbox->writable, NULL);
}

/* Sends what is queued, as much as the channel takes. */
static void send_queued(struct outbox *outbox)
{
  while (outbox->count > 0) {
    int sent = channel_send(outbox->worker->channel, &outbox->ring[outbox->first], -1);
    if (sent == -EAGAIN || sent == -ETOOMANYREFS) {
      block(outbox);
      return;
    }
    if (sent < 0) {
      channel_lost(outbox, sent);
      return;
    }
    outbox->first = (outbox->first + 1) & (outbox->size - 1);
    outbox->count--;
  }
}

static void flush(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct outbox *outbox = argument;
  event_del(outbox->writable);
  outbox->blocked = false;
  send_queued(outbox);
}

static void delay_over(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  outbox_send_now(argument);
}

static int grow(struct outbox *outbox)
{
  size_t size = outbox->size ? outbox->size * 2 : RING_FIRST;
  if (size > WORKER_OUTBOX_MAX)
    return -ENOBUFS;
  union small_message *ring = calloc(size, sizeof *ring);
  if (!ring)
    return -ENOMEM;
  for (size_t i = 0; i < outbox->count; i++)
    ring[i] = outbox->ring[(outbox->first + i) & (outbox->size - 1)];
  free(outbox->ring);
  outbox->ring = ring;
  outbox->size = size;
  outbox->first = 0;
  return 0;
}

struct outbox *outbox_new(struct worker *worker)
{
  struct outbox *outbox = calloc(1, sizeof *outbox);
  if (!outbox)
    return NULL;
  outbox->worker = worker;
  outbox->writable = event_new(worker->base, worker->channel, EV_WRITE | EV_PERSIST, flush, outbox);
  outbox->delay = evtimer_new(worker->base, delay_over, outbox);
  if (!outbox->writable || !outbox->delay) {
    outbox_free(outbox);
    return NULL;
  }
  return outbox;
}

void outbox_free(struct outbox *outbox)
{
  if (!outbox)
    return;
  if (outbox->writable)
    event_free(outbox->writable);
  if (outbox->delay)
    event_free(outbox->delay);
  free(outbox->ring);
  free(outbox);
}

bool outbox_blocked(const struct outbox *outbox)
{
  return outbox->blocked;
}

bool outbox_empty(const struct outbox *outbox)
{
  return outbox->count == 0;
}

static void enqueue(struct outbox *outbox, const void *message)
{
  if (outbox->count == outbox->size && grow(outbox) < 0) {
    log_error("the parent does not read: %zu messages wait for it", outbox->count);
    worker_finish(outbox->worker, 1);
    return;
  }
  uint32_t type;
  memcpy(&type, message, sizeof type);
  memcpy(&outbox->ring[(outbox->first + outbox->count) & (outbox->size - 1)], message, message_size(type));
  outbox->count++;
}

void outbox_send_now(struct outbox *outbox)
{
  if (outbox->count > 0 && !outbox->blocked && !outbox->worker->finished)
    send_queued(outbox);
  if (outbox->count == 0)
    event_del(outbox->delay);
}

void outbox_send(struct outbox *outbox, const void *message)
{
  if (outbox->worker->finished)
    return;
  enqueue(outbox, message);
  outbox_send_now(outbox);
}

void outbox_send_later(struct outbox *outbox, const void *message)
{
  static const struct timeval delay = {.tv_usec = WORKER_REPORT_DELAY_MS * 1000};
  if (outbox->worker->finished)
    return;
  enqueue(outbox, message);
  if (outbox->count >= WORKER_REPORTS_DEFERRED_MAX)
    outbox_send_now(outbox);
  else if (outbox->count == 1)
    event_add(outbox->delay, &delay);
}

int outbox_send_descriptor(struct outbox *outbox, const void *message, int descriptor)
{
  int sent = outbox->blocked ? -EAGAIN : channel_send(outbox->worker->channel, message, descriptor);
  if (sent == 0) {
    outbox_send_now(outbox);
    return 0;
  }
  if (sent != -EAGAIN && sent != -ETOOMANYREFS)
    channel_lost(outbox, sent);
  else
    block(outbox);
  return -EAGAIN;
}
