#include "child/worker/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The backend's first descriptor is its epoll instance and gets the lowest free number; the kernel's name for it says
   whether that was so. */
static int verified_epoll(int expected)
{
  static const char name[] = "anon_inode:[eventpoll]";
  char path[64];
  char target[sizeof name];
  snprintf(path, sizeof path, "/proc/self/fd/%d", expected);
  ssize_t length = readlink(path, target, sizeof target);
  return length == sizeof name - 1 && memcmp(target, name, sizeof name - 1) == 0 ? expected : -1;
}

static int lowest_free(void)
{
  int fd = dup(STDERR_FILENO);
  if (fd >= 0)
    close(fd);
  return fd;
}

int loop_new(struct loop *ret)
{
  struct event_config *config = event_config_new();
  if (!config)
    return -ENOMEM;
  event_config_require_features(config, EV_FEATURE_O1);
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
  int expected = lowest_free();
  struct event_base *base = event_base_new_with_config(config);
  event_config_free(config);
  if (!base)
    return -ENOMEM;
  *ret = (struct loop){.base = base, .epoll = verified_epoll(expected)};
  return 0;
}

int loop_add_exclusive(const struct loop *loop, struct event *event)
{
  if (event_add(event, NULL) < 0)
    return -1;
  if (loop->epoll < 0)
    return 0;
  int fd = event_get_fd(event);
  struct epoll_event exclusive = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = fd};
  /* What libevent has added is replaced; the flag cannot be set on what is there. */
  if (epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL) == 0 &&
      epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &exclusive) == 0)
    return 0;
  event_del(event);
  return -1;
}
