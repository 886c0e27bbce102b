/* Moving bytes of one direction: small amounts by read and write through the worker's buffer, bulk by splice through a
   pipe of the pool. Knows nothing of sessions' ends; says what happened. */
#pragma once

#include "child/worker/session.h"

enum relay_result {
  RELAY_FINE,
  RELAY_SOURCE_FAILED, /* *ret_error says how */
  RELAY_SINK_FAILED,
};

/* The source is readable: reads a bounded amount and writes it on. Sets flow->ended at the end of stream. What the sink
   does not take is kept, and relay_blocked holds: the source must not be read then. */
enum relay_result relay_read(struct worker *worker, struct flow *flow, int source, int sink, int *ret_error);

/* The sink is writable: writes what is kept. */
enum relay_result relay_flush(struct worker *worker, struct flow *flow, int sink, int *ret_error);

/* The sink must take something before more is read from the source. */
static inline bool relay_blocked(const struct flow *flow)
{
  return flow->rest || flow->pipe || flow->waits;
}

/* Frees what is kept; a pipe is emptied and goes back to the pool. */
void relay_release(struct worker *worker, struct flow *flow);
