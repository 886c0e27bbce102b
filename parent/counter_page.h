/* A worker's counters as the parent sees them: a sealed memfd, mapped read-only here. */
#pragma once

#include "shared/counters.h"

/* Creates the page. 0 with the descriptor for the worker (the caller closes it) and the mapping; or -errno. Sealed
   against resizing: a truncated page would kill its reader by SIGBUS. */
int counter_page_create(int *ret_descriptor, const struct counters **ret_page);
void counter_page_unmap(const struct counters *page);
