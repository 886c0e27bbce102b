/* One child as its supervisor sees it. Private to supervise*.c. */
#pragma once

#include "parent/child_log.h"
#include "parent/child_queue.h"
#include "parent/supervise.h"

struct child {
  struct supervisor *supervisor;
  enum role role;
  unsigned index;
  char title[48];
  pid_t pid; /* 0: none */
  struct child_log *log;
  int channel;           /* -1: none, or given up */
  enum link_state state; /* of this end: what the child may say */
  bool was_ready;        /* ever */
  uint32_t done;         /* confinement steps, from its READY */
  uint32_t waived;
  struct child_queue queue;
  struct event *readable;
  struct event *writable;
  struct event *ready_timer;
  struct event *stalled_timer;
  struct event *restart_timer;
  unsigned backoff_ms;
  uint64_t started_ms;
  const struct counters *page;
  struct counters former; /* of its dead predecessors */
};

struct supervisor {
  struct supervisor_settings set;
  int listeners[LISTENERS_MAX]; /* copied: every replacement of a worker needs them */
  char *worker_binary;
  char *resolver_binary;
  struct child *children; /* workers, then the resolver */
  size_t count;
  struct event *child_ended;
  size_t waiting_ready; /* children that have not been ready for the first time */
  bool starting;
  bool draining;
};

/* Ends the link: descriptor closed, events off, what it held given up. The process may still live until it is reaped.
 */
void child_unlink(struct child *child);

/* SIGKILL and unlink; the replacement follows when the process has been reaped. */
void child_kill(struct child *child);

/* Spawns and watches. 0 or -errno. */
int child_launch(struct child *child);

/* Reads and hands on the child's messages; the channel's read event. */
void child_readable(evutil_socket_t fd, short what, void *argument);
void child_writable(evutil_socket_t fd, short what, void *argument);
