#include "child/worker/pipe_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct pipe_pool {
  struct pipe *free;
  unsigned free_count;
  unsigned count;
  struct pipe pipes[];
};

struct pipe_pool *pipe_pool_new(unsigned count, size_t bytes, size_t least)
{
  struct pipe_pool *pool = calloc(1, sizeof *pool + count * sizeof *pool->pipes);
  if (!pool)
    return NULL;
  for (unsigned i = 0; i < count; i++) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
      break;
    (void)fcntl(ends[1], F_SETPIPE_SZ, (int)bytes);
    int size = fcntl(ends[1], F_GETPIPE_SZ);
    if (size < 0 || (size_t)size < least) {
      close(ends[0]);
      close(ends[1]);
      break;
    }
    struct pipe *pipe = &pool->pipes[pool->count++];
    *pipe = (struct pipe){.in = ends[1], .out = ends[0], .size = (size_t)size, .next = pool->free};
    pool->free = pipe;
  }
  pool->free_count = pool->count;
  return pool;
}

void pipe_pool_free(struct pipe_pool *pool)
{
  if (!pool)
    return;
  for (unsigned i = 0; i < pool->count; i++) {
    close(pool->pipes[i].in);
    close(pool->pipes[i].out);
  }
  free(pool);
}

struct pipe *pipe_take(struct pipe_pool *pool)
{
  struct pipe *pipe = pool->free;
  if (!pipe)
    return NULL;
  pool->free = pipe->next;
  pool->free_count--;
  return pipe;
}

void pipe_return(struct pipe_pool *pool, struct pipe *pipe, char *scratch, size_t scratch_size)
{
  while (pipe->held > 0) {
    ssize_t dropped = read(pipe->out, scratch, scratch_size);
    if (dropped < 0 && errno == EINTR)
      continue;
    if (dropped <= 0)
      return;
    pipe->held -= (size_t)dropped;
  }
  pipe->next = pool->free;
  pool->free = pipe;
  pool->free_count++;
}

unsigned pipe_pool_free_count(const struct pipe_pool *pool)
{
  return pool->free_count;
}
