/* One packet, one message, at most one descriptor, over a SOCK_SEQPACKET pair. Non-blocking, no queue of its own. */
#pragma once

#include <stdint.h>

#include "shared/messages.h"

/* Creates the pair, non-blocking and close-on-exec, with large buffers where the system allows it.
   0, and the caller owns both ends; or -errno. */
int channel_pair(int *ret_parent, int *ret_child);

/* Sends a message of message_size(message->type) bytes, with `descriptor` unless it is -1 (the caller keeps it).
   0; -EAGAIN when the peer has not read (nothing was sent); -EPIPE or another -errno when the channel is dead.
   -ETOOMANYREFS: too many descriptors in flight, as EAGAIN. */
int channel_send(int channel, const void *message, int descriptor);

enum channel_result {
  CHANNEL_MESSAGE,         /* *ret and, if the type has one, *ret_descriptor (the caller owns it) are set */
  CHANNEL_DESCRIPTOR_LOST, /* as MESSAGE, but the descriptor could not be received: *ret_descriptor is -1 */
  CHANNEL_EMPTY,           /* nothing there now */
  CHANNEL_CLOSED,          /* end, or a zero-length packet, which cannot be told from it */
  CHANNEL_WRONG,           /* *ret_wrong says what rule was broken; every descriptor that came was closed */
};

/* Receives one message and checks it by message_check and by the descriptors that came along: exactly as many as the
   type has. State is the caller's to check (message_allowed). */
enum channel_result channel_receive(int channel, enum link link, enum receiver receiver, union message *ret,
                                    int *ret_descriptor, const char **ret_wrong);
