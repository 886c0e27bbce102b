/* A policy in memory: rules as data, made by policy/config, read by decide. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/egress/host.h"

struct port_range { /* one port is first == last; 0 to 65535 is every port */
  uint16_t first;
  uint16_t last;
};

struct prefix {
  struct address network;
  uint8_t length;
};

enum rule_kind {
  RULE_HOST,     /* exactly this name */
  RULE_WILDCARD, /* any name below `host` ("*.example.net": host is "example.net"), never itself, never an address */
  RULE_PREFIX,   /* address or CIDR; a single address is a full-length prefix */
  RULE_ANY,      /* deny only: "*" */
};

struct rule {
  enum rule_kind kind;
  char *host;               /* RULE_HOST, RULE_WILDCARD: canonical; else NULL */
  struct prefix prefix;     /* RULE_PREFIX */
  struct port_range *ports; /* at least one */
  size_t port_count;
  struct prefix *resolves_to; /* allow rules by name: special ranges that the name may resolve into */
  size_t resolves_to_count;
  char *text;       /* as written, for people */
  const char *file; /* where it stands; owned by the configuration */
  unsigned line;
};

struct rule_set; /* index over rules: exact names hashed, wildcards by suffix, prefixes sorted */

enum policy_mode { POLICY_ENFORCE };

struct policy {
  char *name;
  enum policy_mode mode;
  struct rule *allow;
  size_t allow_count;
  struct rule *deny;
  size_t deny_count;
  char *message;                /* never NULL, may be empty */
  struct rule_set *allow_index; /* built by policy_index */
  struct rule_set *deny_index;
};

/* Builds both indexes; lists of a hundred thousand entries are looked up in constant time. 0 or -ENOMEM. */
int policy_index(struct policy *policy);

/* Frees everything within; not the struct itself. */
void policy_clear(struct policy *policy);
