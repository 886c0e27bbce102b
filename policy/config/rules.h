/* Entries into rules: those in the configuration and those in list files. */
#pragma once

#include "policy/config/draft.h"

/* One item of allow or deny: an entry's text, { host, ports, resolves_to } or { list }. `field`: struct draft_rules. */
value_reader rules_read_entry;

/* The name as the configuration keeps it: equal names give the same pointer. NULL without memory. */
const char *rules_file_name(struct draft *draft, const char *name);
