/* Taking clients from the listeners, as many as can be served: accept pauses, and never spins. */
#pragma once

#include "child/worker/worker.h"

struct listeners *listeners_new(struct worker *worker);
void listeners_free(struct listeners *listeners);

/* Accept from this descriptor from now on; a repetition changes nothing. 0, -EINVAL when the number is no listener's,
   or -errno. */
int listeners_add(struct listeners *listeners, int descriptor);

/* A client of this listener is gone: room for another. */
void listeners_session_ended(struct listeners *listeners, uint8_t listener);

/* Pauses where no client could be taken now, resumes where one can: called at the end of each turn. A listener that is
   watched without need would be woken for clients that another worker could serve. */
void listeners_adjust(struct listeners *listeners);

/* No more clients. The descriptors stay open and unused. */
void listeners_stop(struct listeners *listeners);
