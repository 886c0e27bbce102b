/* The addresses of a name: no two alike, at most what an answer to the parent holds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shared/address.h"
#include "shared/limits.h"

struct address_list {
  size_t count;
  struct address addresses[LOOKUP_ADDRESSES_MAX];
};

/* Appends unless it is there already. False when the list is full (then nothing changes). */
bool address_list_add(struct address_list *list, const struct address *address);

/* IPv6 and IPv4 by turns, IPv6 first (RFC 8305 section 4), so that neither family crowds out the other. */
void address_list_interleave(const struct address_list *v6, const struct address_list *v4, struct address_list *ret);
