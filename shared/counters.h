/* What a worker counts, in a page that the parent maps read-only (memfd, sealed against resizing). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/* X(symbol, id). Gauges end in _OPEN. */
#define COUNTERS(X) \
  X(ACCEPTED,            "accepted") \
  X(ANSWERED_200,        "answered_200") \
  X(ANSWERED_REFUSAL,    "answered_refusal") \
  X(GONE_BEFORE_200,     "gone_before_200")     /* the client had gone away: nothing was written */ \
  X(GONE_BEFORE_403,     "gone_before_403") \
  X(GONE_BEFORE_502,     "gone_before_502")     /* 502, 503 and 504 */ \
  X(GONE_BEFORE_OTHER,   "gone_before_other") \
  X(GONE_BEFORE_REQUEST, "gone_before_request") \
  X(GONE_BEFORE_VERDICT, "gone_before_verdict") \
  X(CAPTURE_EXCEEDED,    "capture_exceeded") \
  X(LATE_VERDICTS,       "late_verdicts")       /* verdicts for sessions that were gone; their descriptor was closed */ \
  X(ACCEPT_PAUSES,       "accept_pauses") \
  X(BYTES_UP,            "bytes_up") \
  X(BYTES_DOWN,          "bytes_down") \
  X(SPLICED,             "spliced_bytes") \
  X(SESSIONS_OPEN,       "sessions_open") \
  X(TUNNELS_OPEN,        "tunnels_open")

enum counter {
#define X(symbol, id) COUNTER_##symbol,
  COUNTERS(X)
#undef X
  COUNTER_COUNT
};
/* clang-format on */

/* One writer, any number of readers: relaxed atomics suffice, a reader may see a count a moment late. */
struct counters {
  uint64_t values[COUNTER_COUNT];
};

static inline void counter_add(struct counters *counters, enum counter counter, uint64_t amount)
{
  uint64_t now = __atomic_load_n(&counters->values[counter], __ATOMIC_RELAXED);
  __atomic_store_n(&counters->values[counter], now + amount, __ATOMIC_RELAXED);
}

static inline uint64_t counter_read(const struct counters *counters, enum counter counter)
{
  return __atomic_load_n(&counters->values[counter], __ATOMIC_RELAXED);
}

const char *counter_id(unsigned counter);
