#include "child/worker/deadlines.h"

#include <stdbool.h>
#include <stdlib.h>

#include "shared/clock.h"

struct deadlines {
  struct deadline queues[DEADLINE_KINDS]; /* heads of rings; the nearest is next */
  uint32_t durations_ms[DEADLINE_KINDS];
  struct event *timer;
  uint64_t timer_ms; /* when it fires; 0: it is not set */
  void (*expired)(struct deadline *deadline, uint64_t now_ms, void *context);
  void *context;
};

static void set_timer(struct deadlines *deadlines, uint64_t at_ms, uint64_t now_ms)
{
  if (deadlines->timer_ms && deadlines->timer_ms <= at_ms)
    return;
  /* One more, so that the loop's coarse clock does not fire it over and over just before its time. */
  uint64_t pause_ms = at_ms > now_ms ? at_ms - now_ms + 1 : 1;
  struct timeval pause = {.tv_sec = (time_t)(pause_ms / 1000), .tv_usec = (suseconds_t)(pause_ms % 1000) * 1000};
  event_add(deadlines->timer, &pause);
  deadlines->timer_ms = at_ms;
}

static void unlink_deadline(struct deadline *deadline)
{
  deadline->previous->next = deadline->next;
  deadline->next->previous = deadline->previous;
  deadline->kind = DEADLINE_NONE;
}

static void fire(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct deadlines *deadlines = argument;
  uint64_t now_ms = clock_monotonic_ms();
  deadlines->timer_ms = 0;
  uint64_t nearest_ms = UINT64_MAX;
  for (int kind = DEADLINE_NONE + 1; kind < DEADLINE_KINDS; kind++) {
    struct deadline *queue = &deadlines->queues[kind];
    while (queue->next != queue && queue->next->at_ms <= now_ms) {
      struct deadline *due = queue->next;
      unlink_deadline(due);
      deadlines->expired(due, now_ms, deadlines->context);
    }
    if (queue->next != queue && queue->next->at_ms < nearest_ms)
      nearest_ms = queue->next->at_ms;
  }
  if (nearest_ms != UINT64_MAX)
    set_timer(deadlines, nearest_ms, now_ms);
}

struct deadlines *deadlines_new(struct event_base *base,
                                void (*expired)(struct deadline *deadline, uint64_t now_ms, void *context),
                                void *context)
{
  struct deadlines *deadlines = calloc(1, sizeof *deadlines);
  if (!deadlines)
    return NULL;
  for (int kind = 0; kind < DEADLINE_KINDS; kind++)
    deadlines->queues[kind].previous = deadlines->queues[kind].next = &deadlines->queues[kind];
  deadlines->expired = expired;
  deadlines->context = context;
  deadlines->timer = evtimer_new(base, fire, deadlines);
  if (!deadlines->timer) {
    free(deadlines);
    return NULL;
  }
  return deadlines;
}

void deadlines_free(struct deadlines *deadlines)
{
  if (!deadlines)
    return;
  event_free(deadlines->timer);
  free(deadlines);
}

void deadlines_set_duration(struct deadlines *deadlines, enum deadline_kind kind, uint32_t duration_ms)
{
  struct deadline *queue = &deadlines->queues[kind];
  for (struct deadline *each = queue->next; each != queue; each = each->next)
    each->at_ms = each->at_ms - deadlines->durations_ms[kind] + duration_ms;
  deadlines->durations_ms[kind] = duration_ms;
  if (queue->next != queue)
    set_timer(deadlines, queue->next->at_ms, clock_monotonic_ms());
}

void deadline_set(struct deadlines *deadlines, struct deadline *deadline, enum deadline_kind kind, uint64_t now_ms)
{
  uint64_t at_ms = now_ms + deadlines->durations_ms[kind];
  if (deadline->kind == kind && deadline->at_ms == at_ms)
    return;
  deadline_clear(deadline);
  struct deadline *queue = &deadlines->queues[kind];
  deadline->kind = kind;
  deadline->at_ms = at_ms;
  deadline->previous = queue->previous;
  deadline->next = queue;
  queue->previous->next = deadline;
  queue->previous = deadline;
  set_timer(deadlines, at_ms, now_ms);
}

void deadline_clear(struct deadline *deadline)
{
  if (deadline->kind != DEADLINE_NONE)
    unlink_deadline(deadline);
}
