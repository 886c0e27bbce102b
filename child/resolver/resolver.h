/* The resolver as a whole: what the parent says to what is done about it. */
#pragma once

#include "shared/messages.h"

struct resolver;

/* Makes the event base and the c-ares channels: before confinement. `channel` stays the caller's. 0 with *ret owned by
   the caller, or -errno. */
int resolver_new(int channel, struct resolver **ret);

/* Serves until the parent closes the channel. 0 then; -1 after an error, which is logged. */
int resolver_run(struct resolver *resolver);

void resolver_free(struct resolver *resolver);
