/* The hosts file: content to names. Trust: the file is root's, its content is parsed in the confined child all the
   same. hosts(5). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "child/resolver/address_list.h"

struct hosts;

/* Reads `length` bytes: per line an address and any number of names; '#' starts a comment. A line whose address cannot
   be read, and a name that is none, is passed over. Names are compared without regard to case; a name on several lines
   has the addresses of all. 0 with *ret owned by the caller, or -ENOMEM. */
int hosts_parse(const char *text, size_t length, struct hosts **ret);

void hosts_free(struct hosts *hosts);

/* Whether the file has the (canonical) name; then *ret has its addresses in the order of the file. `hosts` may be NULL:
   no file. */
bool hosts_find(const struct hosts *hosts, const char *name, struct address_list *ret);
