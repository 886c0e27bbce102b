/* Look-up of rules: exact names, bases of wildcards and prefixes in one hash table, so that the time does not depend on
   how many rules there are. Pure. */
#pragma once

#include <stdint.h>

#include "policy/egress/policy.h"

/* Builds the index over rules that must outlive it and stay where they are. 0 with *ret owned by the caller, or
   -ENOMEM. */
int rule_set_build(const struct rule *rules, size_t count, struct rule_set **ret);
void rule_set_free(struct rule_set *set);

/* First rule, in the order of the policy, for exactly this name / with exactly this wildcard base / this prefix
   (host bits zero) / "*"; NULL when there is none. */
const struct rule *rule_set_host(const struct rule_set *set, const char *name);
const struct rule *rule_set_wildcard(const struct rule_set *set, const char *base);
const struct rule *rule_set_prefix(const struct rule_set *set, const struct prefix *prefix);
const struct rule *rule_set_any(const struct rule_set *set);

/* The next rule with the same key, or NULL. */
const struct rule *rule_set_next(const struct rule_set *set, const struct rule *rule);

/* The longest prefix length below `below` that some rule of the family has; -1 when there is none. Start with 129. */
int rule_set_shorter(const struct rule_set *set, uint8_t family, int below);

/* Whether one of the rule's ranges holds the port. */
bool rule_has_port(const struct rule *rule, uint16_t port);
