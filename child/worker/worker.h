/* What a worker process has once: its loop, its channel, its books of sessions. Trust: everything that comes from
   clients and upstreams is hostile; what comes from the parent is checked too. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "child/worker/deadlines.h"
#include "child/worker/loop.h"
#include "child/worker/pipe_pool.h"
#include "shared/counters.h"
#include "shared/messages.h"

struct asks;
struct listeners;
struct outbox;
struct session;

struct session_queue {
  struct session *first;
  struct session *last;
};

struct worker {
  const char *name; /* in the log */
  struct loop loop;
  struct event_base *base; /* the loop's */
  int channel;
  struct event *channel_event;
  enum link_state state;
  struct msg_worker_settings settings; /* type 0: none came yet, nothing is accepted before */
  struct counters *counters;
  struct deadlines *deadlines;
  struct pipe_pool *pipes;
  struct asks *asks;
  struct outbox *outbox;
  struct listeners *listeners;

  struct session *sessions; /* all of them; only to end them with the worker */
  size_t session_count;
  struct session_queue waiting; /* one queue for each state of session.h in which something is waited for */
  struct session_queue starved;
  struct session_queue recording;
  struct session *ended; /* freed when the turn is over: callers may still look at them */
  size_t held_bytes;     /* room of all held bytes: settings.buffered_total_bytes bounds it */
  size_t sessions_fit;   /* as many as the descriptor limit bears */

  uint64_t now_ms; /* 0: not read in this turn */
  uint64_t turn;
  bool finished;
  int exit_code;
  char buffer[RELAY_BUFFER_BYTES]; /* every read goes through it; nothing stays in it after a callback */
};

/* Everything that must exist before confinement: event base, pipes, tables. Name, channel and counters stay the
   caller's. NULL when something could not be had (logged). */
struct worker *worker_new(const char *name, int channel, struct counters *counters);

/* Ends every session without a word and frees all. */
void worker_free(struct worker *worker);

/* Watches the channel from now on: to be called when READY has been said. 0 or -ENOMEM. */
int worker_start(struct worker *worker);

/* One turn of the loop: waits (or, with `wait` false, only looks), handles what there is, then does what was put off
   until nothing could be pulled away under a caller. False: the worker is finished and exit_code says how. */
bool worker_turn(struct worker *worker, bool wait);

/* The worker is to end after this turn. */
void worker_finish(struct worker *worker, int exit_code);

/* Milliseconds of the monotonic clock, read once in a turn. */
uint64_t worker_now_ms(struct worker *worker);

/* The budget of held bytes is used up. */
static inline bool worker_is_tight(const struct worker *worker)
{
  return worker->held_bytes >= worker->settings.buffered_total_bytes;
}
