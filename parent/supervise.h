/* The children: started, watched, replaced with back-off, ended. Trust: privileged; takes messages off channels and
   hands on only what passed the checks of shared/messages.h and the child's state. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "parent/audit.h"
#include "policy/config/config.h"
#include "policy/confinement/confine.h"
#include "shared/counters.h"
#include "shared/messages.h"

struct supervisor;
struct child;

/* What the rest of the parent does with children. */
struct child_handler {
  /* The child is confined and serves from now on. */
  void (*ready)(void *context, struct child *child);
  /* A checked message in a legal state. A descriptor that came along is *descriptor; steal it or it is closed.
     `descriptor_lost`: the message has one, but this process could not receive it. Returns NULL, or a literal that says
     how the child broke the rules: it is then killed, replaced, and the event audited. */
  const char *(*message)(void *context, struct child *child, const union message *message, int *descriptor,
                         bool descriptor_lost);
  /* The child is gone (dead, or killed): give up what it held. Its messages are not sent any more. */
  void (*down)(void *context, struct child *child);
  /* Start-up failed, or the last child ended after supervisor_drain: leave the loop with this exit code. */
  void (*finished)(void *context, int exit_code);
};

struct supervisor_settings {
  struct event_base *base;
  const struct config *config;
  struct audit *audit;
  const int *listeners; /* descriptors, handed to each worker at CHILD_LISTENER_FD_FIRST and up; copied */
  size_t listener_count;
  unsigned workers;
  uid_t uid; /* of children */
  gid_t gid;
  unsigned descriptors_max; /* of each child */
  const struct child_handler *handler;
  void *context;
};

/* 0 with *ret owned by the caller, or -errno (a child's binary is missing). Nothing is started yet. */
int supervisor_new(const struct supervisor_settings *settings, struct supervisor **ret);
void supervisor_free(struct supervisor *supervisor);

/* Starts all children. 0 or -errno. */
int supervisor_start(struct supervisor *supervisor);

/* Workers stop accepting and end when their sessions have; the resolver goes last. */
void supervisor_drain(struct supervisor *supervisor);

/* Workers cut what they have, report it and end. To be followed by supervisor_kill after a moment. */
void supervisor_end(struct supervisor *supervisor);

/* SIGKILL to all, at once; waits for them. */
void supervisor_kill(struct supervisor *supervisor);

/* Sends or queues. Takes `descriptor` over in every case (-1: none). A child that does not read is replaced. */
void child_send(struct child *child, const void *message, int descriptor);

/* The child broke the rules: killed, replaced, audited. `why` is a literal. Safe within a handler. */
void child_misbehaved(struct child *child, const char *why);

enum role child_role(const struct child *child);
unsigned child_index(const struct child *child); /* of its role, from 0 */
bool child_serving(const struct child *child);

/* The running resolver, or NULL. */
struct child *supervisor_resolver(struct supervisor *supervisor);

/* Sum over all workers, those that died included. */
uint64_t supervisor_counter(const struct supervisor *supervisor, enum counter counter);

/* Confinement steps in force in every child, and those that any of them had to waive. */
uint32_t supervisor_done(const struct supervisor *supervisor);
uint32_t supervisor_waived(const struct supervisor *supervisor);
