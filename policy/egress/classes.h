/* What kind of address this is: the table of special-purpose ranges (IANA registries, RFC 6890, cloud metadata). Pure.
 */
#pragma once

#include <stdbool.h>

#include "shared/address.h"

enum address_class {
  CLASS_PUBLIC,
  CLASS_LOOPBACK,
  CLASS_UNSPECIFIED,
  CLASS_LINK_LOCAL,
  CLASS_MULTICAST,
  CLASS_BROADCAST,
  CLASS_PRIVATE,
  CLASS_SHARED,
  CLASS_UNIQUE_LOCAL,
  CLASS_BENCHMARKING,
  CLASS_DOCUMENTATION,
  CLASS_RESERVED, /* other special-purpose registry ranges */
  CLASS_METADATA, /* cloud metadata: only by its exact literal */
  CLASS_COUNT
};

/* Class of the address. IPv4 inside IPv4-mapped, IPv4-compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), 6to4 and Teredo
   forms is judged too, and the worse of the two classes is given (metadata is the worst). */
enum address_class address_classify(const struct address *address);

/* IPv4 that an IPv6 form carries. True and *ret set when there is one. Teredo has two (server, client): the client's.
 */
bool address_embedded_ipv4(const struct address *address, struct address *ret);

/* Name as shown to people: "loopback", "link-local", "cloud metadata"... */
const char *address_class_name(enum address_class address_class);
