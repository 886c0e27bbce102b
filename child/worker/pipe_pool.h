/* Large pipes for splice: made before the filter, lent to one direction at a time. */
#pragma once

#include <stddef.h>

struct pipe {
  int in;
  int out;
  size_t size;       /* what the kernel gave */
  size_t held;       /* bytes that are in it now */
  struct pipe *next; /* while it is in the pool */
};

struct pipe_pool;

/* Makes up to `count` pipes of `bytes` each. Past the user's limit the kernel quietly makes them two pages small: what
   is smaller than `least` is closed again, and the pool has fewer. NULL when memory ran out; a pool without pipes is
   none. */
struct pipe_pool *pipe_pool_new(unsigned count, size_t bytes, size_t least);
void pipe_pool_free(struct pipe_pool *pool);

/* An empty pipe, or NULL: then read and write serve. */
struct pipe *pipe_take(struct pipe_pool *pool);

/* Gives it back. What it still holds is read into `scratch` and dropped: nobody else may ever receive it. A pipe that
   cannot be emptied is not lent again. */
void pipe_return(struct pipe_pool *pool, struct pipe *pipe, char *scratch, size_t scratch_size);

unsigned pipe_pool_free_count(const struct pipe_pool *pool);
