/* Deadlines of sessions: one queue per kind, one timer for all. A kind has one duration, so that its queue is in order
   by itself and setting a deadline costs a few pointers, no heap and no system call. */
#pragma once

#include <event2/event.h>
#include <stdint.h>

enum deadline_kind {
  DEADLINE_NONE,
  DEADLINE_HEAD,   /* from accept to the end of the request head */
  DEADLINE_ANSWER, /* from the ask to the parent's answer */
  DEADLINE_IDLE,   /* since the last byte in a tunnel */
  DEADLINE_LOOK,   /* the next look at a tunnel that is half-open or blocked */
  DEADLINE_LINGER, /* from a refusal to the close */
  DEADLINE_KINDS
};

struct deadline { /* embedded in what it belongs to; zeroed before its first use */
  struct deadline *previous;
  struct deadline *next;
  uint64_t at_ms;
  enum deadline_kind kind;
};

struct deadlines;

/* `expired` is called with the deadline taken out of its queue, and may set it again. NULL when memory ran out. */
struct deadlines *deadlines_new(struct event_base *base,
                                void (*expired)(struct deadline *deadline, uint64_t now_ms, void *context),
                                void *context);
void deadlines_free(struct deadlines *deadlines);

/* New duration of a kind, at least 1. Deadlines that are running are moved by the difference. */
void deadlines_set_duration(struct deadlines *deadlines, enum deadline_kind kind, uint32_t duration_ms);

/* Starts or restarts: the kind's duration from now on. */
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, enum deadline_kind kind, uint64_t now_ms);

void deadline_clear(struct deadline *deadline);
