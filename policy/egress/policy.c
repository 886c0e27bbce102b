#include "policy/egress/policy.h"

#include <stdlib.h>

#include "policy/egress/entry.h"
#include "policy/egress/rule_set.h"

int policy_index(struct policy *policy)
{
  struct rule_set *allow = NULL, *deny = NULL;
  int result = rule_set_build(policy->allow, policy->allow_count, &allow);
  if (result == 0)
    result = rule_set_build(policy->deny, policy->deny_count, &deny);
  if (result < 0) {
    rule_set_free(allow);
    return result;
  }
  rule_set_free(policy->allow_index);
  rule_set_free(policy->deny_index);
  policy->allow_index = allow;
  policy->deny_index = deny;
  return 0;
}

static void free_rules(struct rule *rules, size_t count)
{
  for (size_t i = 0; i < count; i++)
    rule_clear(&rules[i]);
  free(rules);
}

void policy_clear(struct policy *policy)
{
  free_rules(policy->allow, policy->allow_count);
  free_rules(policy->deny, policy->deny_count);
  rule_set_free(policy->allow_index);
  rule_set_free(policy->deny_index);
  free(policy->name);
  free(policy->message);
  *policy = (struct policy){0};
}
