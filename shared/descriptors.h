/* Descriptors that close by scope, and the few flags that are set on them. */
#pragma once

#include <stdbool.h>
#include <unistd.h>

static inline void descriptor_close(int *fd)
{
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

/* `cleanup_fd int fd = open(...)`: closed when the scope ends, unless stolen. */
#define cleanup_fd __attribute__((cleanup(descriptor_close)))

static inline int steal_fd(int *fd)
{
  int stolen = *fd;
  *fd = -1;
  return stolen;
}

/* 0 or -errno. */
int descriptor_set_nonblocking(int fd, bool on);
int descriptor_set_cloexec(int fd, bool on);
