#include "policy/config/nearest.h"

#include <string.h>

#define WORD_MAX 48

static unsigned least(unsigned a, unsigned b)
{
  return a < b ? a : b;
}

/* Optimal string alignment distance; words are at most WORD_MAX long. */
static unsigned distance(const char *a, const char *b)
{
  unsigned rows[3][WORD_MAX + 1];
  unsigned *before = rows[0], *previous = rows[1], *current = rows[2];
  size_t a_length = strlen(a), b_length = strlen(b);
  for (size_t j = 0; j <= b_length; j++)
    previous[j] = (unsigned)j;
  for (size_t i = 1; i <= a_length; i++) {
    current[0] = (unsigned)i;
    for (size_t j = 1; j <= b_length; j++) {
      unsigned replaced = previous[j - 1] + (a[i - 1] != b[j - 1]);
      current[j] = least(replaced, least(previous[j], current[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = least(current[j], before[j - 2] + 1);
    }
    unsigned *spare = before;
    before = previous;
    previous = current;
    current = spare;
  }
  return previous[b_length];
}

const char *nearest_word(const char *word, const char *(*candidate)(const void *context, size_t index),
                         const void *context)
{
  size_t length = strlen(word);
  if (length > WORD_MAX)
    return NULL;
  const char *best = NULL;
  unsigned best_distance = (unsigned)(length / 3) + 1;
  const char *name;
  for (size_t i = 0; (name = candidate(context, i)) != NULL; i++) {
    if (strlen(name) > WORD_MAX)
      continue;
    unsigned far = distance(word, name);
    if (far <= best_distance && far < length) {
      best = name;
      best_distance = far - (far > 0);
    }
  }
  return best;
}
