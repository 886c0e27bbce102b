/* From what was written to what is used. */
#pragma once

#include "policy/config/draft.h"

/* Checks the draft and moves it into draft->config; every problem is reported. Uses what the walk could read, so that
   problems of both kinds are shown at once. `file`: of the draft's lines. */
void build_config(struct draft *draft, const char *file);
