/* A child that confines itself exactly like the product, and then makes the one call that it is told to. */
#pragma once

#include "policy/confinement/confine.h"

/* What the test sends once, with two descriptors: the sessions. */
struct probe_order {
  uint32_t attempt; /* index; attempts_count: none, live on until the channel ends */
};

int probe_main(enum role role);
