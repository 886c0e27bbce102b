#include "parent/child_queue.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/channel.h"
#include "shared/descriptors.h"

struct queued {
  struct queued *next;
  int descriptor;
  uint64_t message[]; /* aligned for any of them */
};

int child_queue_add(struct child_queue *queue, const void *message, int descriptor)
{
  uint32_t type;
  memcpy(&type, message, sizeof type);
  struct queued *queued = malloc(sizeof *queued + message_size(type));
  if (!queued) {
    descriptor_close(&descriptor);
    return -ENOMEM;
  }
  queued->next = NULL;
  queued->descriptor = descriptor;
  memcpy(queued->message, message, message_size(type));
  if (queue->last)
    queue->last->next = queued;
  else
    queue->first = queued;
  queue->last = queued;
  queue->length++;
  return 0;
}

static void drop_first(struct child_queue *queue)
{
  struct queued *first = queue->first;
  queue->first = first->next;
  if (!queue->first)
    queue->last = NULL;
  queue->length--;
  descriptor_close(&first->descriptor);
  free(first);
}

int child_queue_send(struct child_queue *queue, int channel)
{
  while (queue->first) {
    int sent = channel_send(channel, queue->first->message, queue->first->descriptor);
    if (sent == -ETOOMANYREFS)
      return -EAGAIN;
    if (sent < 0)
      return sent;
    drop_first(queue);
  }
  return 0;
}

void child_queue_clear(struct child_queue *queue)
{
  while (queue->first)
    drop_first(queue);
}
