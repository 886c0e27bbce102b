/* Prefixes and the several faces of an address: IPv4 inside IPv6. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/egress/classes.h"
#include "policy/egress/policy.h"

/* Itself, and at most as many embedded forms as one address can be read in (64:ff9b:1::/48 has four). */
#define PREFIX_VIEWS_MAX 5

/* Every way to read the prefix: itself first, then as IPv4 prefixes where it lies in a form that carries IPv4. Returns
   the count, 1 to PREFIX_VIEWS_MAX. */
size_t prefix_views(const struct prefix *prefix, struct prefix ret[PREFIX_VIEWS_MAX]);

/* 32 or 128. */
uint8_t address_bits(const struct address *address);

/* The address as a prefix of full length. */
struct prefix prefix_of_address(const struct address *address);

/* Zeroes what lies behind the length. */
struct prefix prefix_masked(const struct prefix *prefix);

/* "10.20.0.0/16"; a full-length prefix as the address alone. Returns `text`; size at least ADDRESS_TEXT_SIZE. */
const char *prefix_format(const struct prefix *prefix, char *text, size_t size);

bool prefix_contains(const struct prefix *outer, const struct prefix *inner);

/* Whether the address, or an IPv4 address that it carries, lies in the prefix. */
bool prefix_holds(const struct prefix *prefix, const struct address *address);

/* The narrowest special range that holds the address, by the table alone (embedded forms are not looked into).
   False when there is none: the address is public. */
bool special_range(const struct address *address, struct prefix *ret_range, enum address_class *ret_class);

/* Whether a rule by this prefix opens the address: it is public in every reading, or the prefix is exactly it, or the
   prefix holds it and lies, for each reading that is special, wholly inside that special range. Metadata only by the
   exact literal. */
bool prefix_opens(const struct prefix *prefix, const struct address *address);
