#include "child/worker/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t room_for(const struct held *held, size_t needed)
{
  /* The first piece gets what it needs: often it is the only one. Growth doubles, so that drip by drip costs no more
     than one copy of everything. */
  size_t size = held ? (size_t)held->size * 2 : needed;
  return size < needed ? needed : size;
}

int held_append(struct held **held, size_t *total, const void *bytes, size_t length)
{
  struct held *old = *held;
  size_t end = old ? old->end : 0;
  size_t needed = end + length;
  if (needed > UINT32_MAX / 2)
    return -ENOMEM;
  if (!old || needed > old->size) {
    size_t size = room_for(old, needed);
    struct held *grown = realloc(old, sizeof *grown + size);
    if (!grown)
      return -ENOMEM;
    if (!old)
      grown->start = grown->end = grown->size = 0;
    *total += size - grown->size;
    grown->size = (uint32_t)size;
    *held = grown;
  }
  memcpy((*held)->bytes + end, bytes, length);
  (*held)->end = (uint32_t)needed;
  return 0;
}

void held_free(struct held **held, size_t *total)
{
  if (*held)
    *total -= (*held)->size;
  free(*held);
  *held = NULL;
}
