/* Starts probes through the real spawn_child, as the parent starts its children. */
#pragma once

#include <sys/types.h>

#include "shared/messages.h"
#include "tests/confinement/attempt_run.h"

#define UNPRIVILEGED 65534U /* nobody, and its group */

struct probe {
  enum role role;
  pid_t pid;
  int channel;
  struct msg_ready ready;
};

/* Where the test's own binary lies, with a slash. */
const char *stage_folder(void);

/* Path of a probe's binary, for whoever: an unprivileged user may not be able to walk to it. Static storage. */
const char *stage_probe_binary(enum role role);

/* The parent's side of the scene: a listener with a client that waits, counters. Once per process. */
void stage_prepare(void);

/* Spawns and waits for READY. As root with the unprivileged user, else as ourselves, best effort. 0, or -errno with the
   process reaped. */
int probe_start(enum role role, struct probe *ret);

/* Gives it the sessions and the order; *ret is valid if it returned. Waits for its end. Returns the wait status. */
int probe_try(struct probe *probe, size_t attempt, bool *ret_returned, struct attempt_result *ret);

/* Gives it the order to live on. */
void probe_keep(struct probe *probe);

/* Ends the channel and waits. Returns the wait status. */
int probe_stop(struct probe *probe);

/* Runs `work` in a copy of this process, which it may change in ways that the test framework would not survive, and
   passes when it returns true. What it finds it says with COPY_CHECK. */
void stage_in_copy(bool (*work)(void));

#define COPY_CHECK(condition, ...) stage_check((condition), #condition, " " __VA_ARGS__)
#define COPY_REQUIRE(condition, ...)         \
  do {                                       \
    if (!COPY_CHECK(condition, __VA_ARGS__)) \
      return false;                          \
  } while (0)

/* Returns `holds`; says so when it does not, and lets stage_in_copy fail. */
bool stage_check(bool holds, const char *condition, const char *format, ...) __attribute__((format(printf, 3, 4)));
