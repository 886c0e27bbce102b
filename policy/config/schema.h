/* What may stand in the configuration: the tables. */
#pragma once

#include "policy/config/draft.h"
#include "policy/config/walk.h"

/* Fills a struct draft. */
extern const struct schema schema_root;

/* The defaults, before the walk. */
void schema_defaults(struct draft *draft);
