/* The decision. One function for the parent, `sallyport check` and the tests. Pure. */
#pragma once

#include "policy/egress/classes.h"
#include "policy/egress/policy.h"
#include "shared/reasons.h"

/* A set of addresses and ports that are Sallyport's own: never a destination. */
struct own_listener {
  struct endpoint endpoint; /* wildcard address: all of 127/8, ::1 and every interface address count */
};

struct own_listeners {
  const struct own_listener *listeners;
  size_t count;
  const struct address *interfaces; /* every address of this host */
  size_t interface_count;
};

struct verdict {
  enum reason reason; /* REASON_NONE: go on. Else NOT_ALLOWED, DENIED, ODD_ADDRESS, BLOCKED_ADDRESS, OWN_LISTENER */
  const struct rule *rule;          /* the rule that allowed or denied; NULL for a miss. Belongs to the policy */
  enum address_class address_class; /* BLOCKED_ADDRESS: the class */
};

/* Judges host and port before anything is looked up: malformed was refused before, then ODD_ADDRESS, deny, allow, miss.
   For a literal address its class is judged too (a rule opens a special class only when it lies wholly inside one
   special range; metadata only by its exact literal), and own listeners. REASON_NONE for a name means: it may be
   resolved, and each address judged by decide_address. Deny rules by prefix hold for literals here. */
struct verdict decide_host(const struct policy *policy, const struct host *host, uint16_t port,
                           const struct own_listeners *own);

/* Judges one address that an allowed name resolved to. `allowed_by` is the rule from decide_host. Deny prefixes, own
   listeners, classes with the rule's resolves_to. */
struct verdict decide_address(const struct policy *policy, const struct rule *allowed_by, const struct address *address,
                              uint16_t port, const struct own_listeners *own);

/* The entry that would permit host and port, as an allow entry that check-config accepts; empty where none may exist
   (metadata addresses, odd spellings). Returns the length. */
size_t decide_suggest(const struct host *host, uint16_t port, char *ret, size_t size);
