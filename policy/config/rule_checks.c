#include "policy/config/rule_checks.h"

#include <libpsl.h>
#include <string.h>

#include "policy/egress/prefix.h"
#include "policy/egress/rule_set.h"
#include "shared/limits.h"

static bool covers_range(const struct rule *rule, const struct port_range *range)
{
  for (size_t i = 0; i < rule->port_count; i++) {
    if (rule->ports[i].first <= range->first && range->last <= rule->ports[i].last)
      return true;
  }
  return false;
}

/* The rule of the chain, before `end`, that covers the range. */
static const struct rule *find_covering(const struct rule_set *set, const struct rule *chain, const struct rule *end,
                                        const struct port_range *range)
{
  while (chain && chain != end && !covers_range(chain, range))
    chain = rule_set_next(set, chain);
  return chain == end ? NULL : chain;
}

static const struct rule *find_deny_over_name(const struct rule_set *deny, const struct rule *rule,
                                              const struct port_range *range)
{
  const struct rule *found = NULL;
  if (rule->kind == RULE_HOST)
    found = find_covering(deny, rule_set_host(deny, rule->host), NULL, range);
  else
    found = find_covering(deny, rule_set_wildcard(deny, rule->host), NULL, range);
  for (const char *dot = strchr(rule->host, '.'); dot && !found; dot = strchr(dot + 1, '.'))
    found = find_covering(deny, rule_set_wildcard(deny, dot + 1), NULL, range);
  return found;
}

static const struct rule *find_deny_over_prefix(const struct rule_set *deny, const struct rule *rule,
                                                const struct port_range *range)
{
  struct prefix views[PREFIX_VIEWS_MAX];
  size_t count = prefix_views(&rule->prefix, views);
  const struct rule *found = NULL;
  for (size_t i = 0; i < count; i++) {
    uint8_t family = views[i].network.family;
    for (int length = rule_set_shorter(deny, family, views[i].length + 1); length >= 0 && !found;
         length = rule_set_shorter(deny, family, length)) {
      struct prefix wider = {.network = views[i].network, .length = (uint8_t)length};
      wider = prefix_masked(&wider);
      found = find_covering(deny, rule_set_prefix(deny, &wider), NULL, range);
    }
  }
  return found;
}

static const struct rule *find_deny_over(const struct rule_set *deny, const struct rule *rule,
                                         const struct port_range *range)
{
  const struct rule *found =
    rule->kind == RULE_PREFIX ? find_deny_over_prefix(deny, rule, range) : find_deny_over_name(deny, rule, range);
  return found ? found : find_covering(deny, rule_set_any(deny), NULL, range);
}

/* Shadowed: each of its port ranges is covered by a deny. */
static void check_shadow(const struct rule_set *deny, const struct rule *rule, struct report_builder *report)
{
  const struct rule *over = NULL;
  for (size_t i = 0; i < rule->port_count; i++) {
    over = find_deny_over(deny, rule, &rule->ports[i]);
    if (!over)
      return;
  }
  if (!over)
    return; /* no ports, which the entry parser never makes */
  report_warning(report, rule->file, rule->line, "\"%s\" never applies: \"%s\" (%s:%u) denies it", rule->text,
                 over->text, over->file, over->line);
}

static const struct rule *chain_of(const struct rule_set *set, const struct rule *rule)
{
  switch (rule->kind) {
  case RULE_HOST:
    return rule_set_host(set, rule->host);
  case RULE_WILDCARD:
    return rule_set_wildcard(set, rule->host);
  case RULE_PREFIX:
    return rule_set_prefix(set, &rule->prefix);
  case RULE_ANY:
  default:
    return rule_set_any(set);
  }
}

static void check_repetition(const struct rule_set *set, const struct rule *rule, struct report_builder *report)
{
  const struct rule *first = NULL;
  for (size_t i = 0; i < rule->port_count; i++) {
    first = find_covering(set, chain_of(set, rule), rule, &rule->ports[i]);
    if (!first)
      return;
  }
  if (!first)
    return;
  report_warning(report, rule->file, rule->line, "\"%s\" never applies: \"%s\" (%s:%u) comes first and says it all",
                 rule->text, first->text, first->file, first->line);
}

static void check_suffix(const struct rule *rule, struct report_builder *report)
{
  if (rule->kind == RULE_WILDCARD &&
      psl_is_public_suffix2(psl_builtin(), rule->host, PSL_TYPE_ANY | PSL_TYPE_NO_STAR_RULE))
    report_warning(report, rule->file, rule->line,
                   "\"%s\" allows everybody's names: \"%s\" is a public suffix, below which anyone may register",
                   rule->text, rule->host);
}

static void check_network(const struct rule *rule, struct report_builder *report)
{
  if (rule->kind != RULE_PREFIX || prefix_opens(&rule->prefix, &rule->prefix.network))
    return;
  report_warning(report, rule->file, rule->line,
                 "\"%s\" reaches public addresses only: it is wider than the %s range that it begins in", rule->text,
                 address_class_name(address_classify(&rule->prefix.network)));
}

/* True, reported, when the rule is one too many for its host. Keeps the other checks from going through long chains
   again and again, too. */
static bool is_too_many(const struct rule_set *set, const struct rule *rule, struct report_builder *report)
{
  const struct rule *at = chain_of(set, rule);
  for (unsigned i = 0; at && at != rule; i++) {
    if (i == RULES_PER_HOST_MAX) {
      report_error(report, rule->file, rule->line, "more than %d rules for the host of \"%s\": list its ports in one",
                   RULES_PER_HOST_MAX, rule->text);
      return true;
    }
    at = rule_set_next(set, at);
  }
  return false;
}

void rule_checks(const struct policy *policy, struct report_builder *report)
{
  for (size_t i = 0; i < policy->deny_count; i++) {
    const struct rule *rule = &policy->deny[i];
    if (is_too_many(policy->deny_index, rule, report))
      return;
    check_repetition(policy->deny_index, rule, report);
  }
  for (size_t i = 0; i < policy->allow_count; i++) {
    const struct rule *rule = &policy->allow[i];
    if (is_too_many(policy->allow_index, rule, report))
      return;
    check_repetition(policy->allow_index, rule, report);
    check_shadow(policy->deny_index, rule, report);
    check_suffix(rule, report);
    check_network(rule, report);
  }
}
