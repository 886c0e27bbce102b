/* Bytes that must be kept for later: an incomplete head, what a client sent too early, what a sink did not take.
   Counted against the worker's one budget. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct held {
  uint32_t start; /* first byte not yet taken */
  uint32_t end;
  uint32_t size;
  char bytes[];
};

/* Appends, making *held (NULL: none yet) as large as needed; `*total` counts the room that all of them take.
   0 or -ENOMEM, and then nothing has changed. */
int held_append(struct held **held, size_t *total, const void *bytes, size_t length);

/* Frees it and sets it to NULL; NULL is fine. */
void held_free(struct held **held, size_t *total);

static inline size_t held_length(const struct held *held)
{
  return held ? held->end - held->start : 0;
}
