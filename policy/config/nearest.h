/* "Did you mean": pure. */
#pragma once

#include <stddef.h>

/* The candidate that is a slip of the pen away from `word` (letters changed, left out, added or swapped); NULL when
   none is near. `candidate` gives the name of the index, NULL behind the last. */
const char *nearest_word(const char *word, const char *(*candidate)(const void *context, size_t index),
                         const void *context);
