/* What a new process does between clone and exec. Private to spawn.c.

   The parent may have had a second thread, which the copy does not have but whose locks it does: nothing here may
   allocate, log, or call anything that is not async-signal-safe. */
#pragma once

#include <stdbool.h>

struct child_side {
  const char *binary;
  const char *const *arguments;
  const char *const *environment;
  const int *plan; /* CHILD_LISTENER_FD_END descriptors, by the number that each is to have */
  int go;          /* a byte comes when the maps are written; nothing when the parent is gone */
  int go_other_end;
  int report; /* takes errno when exec is not reached; closes with exec */
  bool raise_capabilities;
};

/* Called with all signals blocked. */
void child_side_run(const struct child_side *side) __attribute__((noreturn));
