/* The event loop, and one thing that libevent 2.1 does not offer: waking one worker, not all, for a client that comes
   to a listener which all of them watch. */
#pragma once

#include <event2/event.h>

struct loop {
  struct event_base *base;
  int epoll; /* libevent's own descriptor; -1: not found, then every worker wakes for every client */
};

/* No locks and no signals. 0 or -errno; to be called before confinement. */
int loop_new(struct loop *ret);

/* Adds the event, which is for EV_READ | EV_PERSIST and the only one of its descriptor, so that a readiness that other
   processes wait for too wakes only one of them. event_del as usual. 0 or -1. */
int loop_add_exclusive(const struct loop *loop, struct event *event);
