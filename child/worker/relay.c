#include "child/worker/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static bool would_block(int error)
{
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static void pipe_give_back(struct worker *worker, struct flow *flow)
{
  if (flow->pipe)
    pipe_return(worker->pipes, flow->pipe, worker->buffer, sizeof worker->buffer);
  flow->pipe = NULL;
}

void relay_release(struct worker *worker, struct flow *flow)
{
  held_free(&flow->rest, &worker->held_bytes);
  pipe_give_back(worker, flow);
}

/* While the budget is used up, only what the sink will very likely take at once is read, so that nothing more has to be
   kept and nobody starves because of those who do not read. */
static bool sink_is_ready(int sink)
{
  struct pollfd poll_sink = {.fd = sink, .events = POLLOUT};
  return poll(&poll_sink, 1, 0) != 0;
}

static size_t read_size(const struct worker *worker)
{
  size_t size = worker_is_tight(worker) ? RELAY_TIGHT_READ_BYTES : sizeof worker->buffer;
  return size < worker->settings.buffered_bytes ? size : worker->settings.buffered_bytes;
}

static enum relay_result write_on(struct worker *worker, struct flow *flow, int sink, size_t length, int *ret_error)
{
  ssize_t written = write(sink, worker->buffer, length);
  if (written < 0 && !would_block(errno)) {
    *ret_error = errno;
    return RELAY_SINK_FAILED;
  }
  size_t taken = written < 0 ? 0 : (size_t)written;
  flow->bytes += taken;
  if (taken < length && held_append(&flow->rest, &worker->held_bytes, worker->buffer + taken, length - taken) < 0) {
    *ret_error = ENOMEM;
    return RELAY_SINK_FAILED;
  }
  return RELAY_FINE;
}

static enum relay_result read_and_write(struct worker *worker, struct flow *flow, int source, int sink, int *ret_error)
{
  if (worker_is_tight(worker) && !sink_is_ready(sink)) {
    flow->waits = true;
    return RELAY_FINE;
  }
  ssize_t length = read(source, worker->buffer, read_size(worker));
  if (length < 0) {
    *ret_error = errno;
    return would_block(errno) ? RELAY_FINE : RELAY_SOURCE_FAILED;
  }
  if (length == 0) {
    flow->ended = true;
    return RELAY_FINE;
  }
  if (length < RELAY_BULK_READ_BYTES)
    flow->full_reads = 0;
  else if (flow->full_reads < RELAY_BULK_READS)
    flow->full_reads++;
  return write_on(worker, flow, sink, (size_t)length, ret_error);
}

static enum relay_result pipe_to_sink(struct worker *worker, struct flow *flow, int sink, int *ret_error)
{
  while (flow->pipe->held > 0) {
    ssize_t moved = splice(flow->pipe->out, NULL, sink, NULL, flow->pipe->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (moved < 0 && errno == EINTR)
      continue;
    if (moved < 0 && would_block(errno))
      return RELAY_FINE;
    if (moved <= 0) {
      *ret_error = moved < 0 ? errno : EIO;
      return RELAY_SINK_FAILED;
    }
    flow->pipe->held -= (size_t)moved;
    flow->bytes += (size_t)moved;
    counter_add(worker->counters, COUNTER_SPLICED, (uint64_t)moved);
  }
  return RELAY_FINE;
}

/* One fill of the empty pipe and what the sink takes of it. *ret_again: the source may have more at once. */
static enum relay_result splice_once(struct worker *worker, struct flow *flow, int source, int sink, bool *ret_again,
                                     int *ret_error)
{
  struct pipe *pipe = flow->pipe;
  *ret_again = false;
  ssize_t filled = splice(source, NULL, pipe->in, NULL, pipe->size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (filled == 0) {
    flow->ended = true;
    return RELAY_FINE;
  }
  if (filled < 0) {
    *ret_error = errno;
    flow->full_reads = 0;
    return would_block(errno) ? RELAY_FINE : RELAY_SOURCE_FAILED;
  }
  pipe->held = (size_t)filled;
  if (filled < RELAY_BULK_READ_BYTES)
    flow->full_reads = 0; /* it has slowed down: back to read and write */
  else
    *ret_again = (size_t)filled == pipe->size;
  return pipe_to_sink(worker, flow, sink, ret_error);
}

static enum relay_result splice_on(struct worker *worker, struct flow *flow, int source, int sink, int *ret_error)
{
  enum relay_result result = RELAY_FINE;
  bool again = true;
  for (int i = 0; i < RELAY_SPLICES_PER_WAKEUP && again && result == RELAY_FINE && flow->pipe->held == 0; i++)
    result = splice_once(worker, flow, source, sink, &again, ret_error);
  if (flow->pipe->held == 0)
    pipe_give_back(worker, flow);
  return result;
}

enum relay_result relay_read(struct worker *worker, struct flow *flow, int source, int sink, int *ret_error)
{
  if (relay_blocked(flow))
    return RELAY_FINE;
  if (flow->full_reads >= RELAY_BULK_READS)
    flow->pipe = pipe_take(worker->pipes);
  if (flow->pipe)
    return splice_on(worker, flow, source, sink, ret_error);
  return read_and_write(worker, flow, source, sink, ret_error);
}

enum relay_result relay_flush(struct worker *worker, struct flow *flow, int sink, int *ret_error)
{
  flow->waits = false;
  if (flow->pipe) {
    enum relay_result result = pipe_to_sink(worker, flow, sink, ret_error);
    if (flow->pipe->held == 0)
      pipe_give_back(worker, flow);
    return result;
  }
  if (!flow->rest)
    return RELAY_FINE;
  ssize_t written = write(sink, flow->rest->bytes + flow->rest->start, held_length(flow->rest));
  if (written < 0) {
    *ret_error = errno;
    return would_block(errno) ? RELAY_FINE : RELAY_SINK_FAILED;
  }
  flow->bytes += (size_t)written;
  flow->rest->start += (uint32_t)written;
  if (held_length(flow->rest) == 0)
    held_free(&flow->rest, &worker->held_bytes);
  return RELAY_FINE;
}
