#include "child/resolver/parent_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/channel.h"
#include "shared/log.h"

struct waiting {
  struct waiting *next;
  unsigned char message[]; /* message_size bytes */
};

struct parent_link {
  struct event_base *base;
  int channel;
  struct event *readable;
  struct event *writable;
  struct waiting *first;
  struct waiting **end;
  parent_link_handler *handle;
  void *arg;
  bool ended_well;
};

static void end(struct parent_link *link, bool well)
{
  link->ended_well = well;
  event_base_loopbreak(link->base);
}

static void keep(struct parent_link *link, const void *message)
{
  uint32_t type;
  memcpy(&type, message, sizeof type);
  size_t size = message_size(type);
  struct waiting *waiting = malloc(sizeof *waiting + size);
  if (!waiting || event_add(link->writable, NULL) < 0) {
    free(waiting);
    log_error("no memory for what the parent has not read");
    end(link, false);
    return;
  }
  waiting->next = NULL;
  memcpy(waiting->message, message, size);
  *link->end = waiting;
  link->end = &waiting->next;
  event_del(link->readable);
}

void parent_link_send(struct parent_link *link, const void *message)
{
  int result = link->first ? -EAGAIN : channel_send(link->channel, message, -1);
  if (result == -EAGAIN)
    keep(link, message);
  else if (result < 0)
    end(link, result == -EPIPE || result == -ECONNRESET);
}

static void channel_writable(evutil_socket_t fd, short what, void *arg)
{
  (void)fd;
  (void)what;
  struct parent_link *link = arg;
  while (link->first) {
    int result = channel_send(link->channel, link->first->message, -1);
    if (result == -EAGAIN)
      return;
    if (result < 0) {
      end(link, result == -EPIPE || result == -ECONNRESET);
      return;
    }
    struct waiting *next = link->first->next;
    free(link->first);
    link->first = next;
  }
  link->end = &link->first;
  event_del(link->writable);
  if (event_add(link->readable, NULL) < 0)
    end(link, false);
}

static void channel_readable(evutil_socket_t fd, short what, void *arg)
{
  (void)fd;
  (void)what;
  struct parent_link *link = arg;
  for (unsigned i = 0; i < MESSAGES_PER_WAKEUP && !link->first; i++) {
    union message message;
    int descriptor;
    const char *wrong;
    switch (channel_receive(link->channel, LINK_RESOLVER, TO_CHILD, &message, &descriptor, &wrong)) {
    case CHANNEL_EMPTY:
      return;
    case CHANNEL_CLOSED:
      end(link, true);
      return;
    case CHANNEL_WRONG:
      log_error("a message from the parent is malformed: %s", wrong);
      end(link, false);
      return;
    case CHANNEL_MESSAGE:
    case CHANNEL_DESCRIPTOR_LOST:
      link->handle(link->arg, &message, descriptor);
      if (event_base_got_break(link->base))
        return;
    }
  }
}

int parent_link_new(struct event_base *base, int channel, parent_link_handler *handle, void *arg,
                    struct parent_link **ret)
{
  struct parent_link *link = calloc(1, sizeof *link);
  if (!link)
    return -ENOMEM;
  *link = (struct parent_link){.base = base, .channel = channel, .handle = handle, .arg = arg};
  link->end = &link->first;
  link->readable = event_new(base, channel, EV_READ | EV_PERSIST, channel_readable, link);
  link->writable = event_new(base, channel, EV_WRITE | EV_PERSIST, channel_writable, link);
  if (!link->readable || !link->writable || event_add(link->readable, NULL) < 0) {
    parent_link_free(link);
    return -ENOMEM;
  }
  *ret = link;
  return 0;
}

void parent_link_free(struct parent_link *link)
{
  if (!link)
    return;
  while (link->first) {
    struct waiting *next = link->first->next;
    free(link->first);
    link->first = next;
  }
  if (link->readable)
    event_free(link->readable);
  if (link->writable)
    event_free(link->writable);
  free(link);
}

bool parent_link_ended_well(const struct parent_link *link)
{
  return link->ended_well;
}
