/* What waits for a child that has not read yet. Bounded by the child's credit, hence by its owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct child_queue {
  struct queued *first;
  struct queued *last;
  size_t length;
};

/* Copies the message and takes the descriptor over. 0 or -ENOMEM (then the descriptor is closed). */
int child_queue_add(struct child_queue *queue, const void *message, int descriptor);

/* Sends from the front. 0: empty now; -EAGAIN: the rest waits; another -errno: the channel is dead. */
int child_queue_send(struct child_queue *queue, int channel);

void child_queue_clear(struct child_queue *queue);
