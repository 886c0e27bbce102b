/* Listeners: addresses, policies, and who may use them. */
#pragma once

#include "policy/config/draft.h"

/* After the policies have been built. */
void build_listeners(struct draft *draft, const char *file);
