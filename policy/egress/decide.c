#include "policy/egress/decide.h"

#include <stdio.h>
#include <string.h>

#include "policy/egress/prefix.h"
#include "policy/egress/rule_set.h"

static const struct rule *with_port(const struct rule_set *set, const struct rule *rule, uint16_t port)
{
  while (rule && !rule_has_port(rule, port))
    rule = rule_set_next(set, rule);
  return rule;
}

/* The most specific rule for a name: itself, then wildcards from the nearest base up, then "*". */
static const struct rule *find_for_name(const struct rule_set *set, const char *name, uint16_t port)
{
  const struct rule *rule = with_port(set, rule_set_host(set, name), port);
  for (const char *dot = strchr(name, '.'); dot && !rule; dot = strchr(dot + 1, '.'))
    rule = with_port(set, rule_set_wildcard(set, dot + 1), port);
  return rule ? rule : with_port(set, rule_set_any(set), port);
}

/* Among the rules that hold the address in this reading, longest prefix first: the first that opens `opened`, when it
   is given, else the first. *ret_held is set to the first that holds, opening or not. */
static const struct rule *find_in_view(const struct rule_set *set, const struct address *view,
                                       const struct address *opened, uint16_t port, const struct rule **ret_held)
{
  for (int length = rule_set_shorter(set, view->family, 129); length >= 0;
       length = rule_set_shorter(set, view->family, length)) {
    struct prefix prefix = {.network = *view, .length = (uint8_t)length};
    prefix = prefix_masked(&prefix);
    const struct rule *rule = with_port(set, rule_set_prefix(set, &prefix), port);
    for (; rule; rule = with_port(set, rule_set_next(set, rule), port)) {
      if (!*ret_held)
        *ret_held = rule;
      if (!opened || prefix_opens(&rule->prefix, opened))
        return rule;
    }
  }
  return NULL;
}

static const struct rule *find_for_address(const struct rule_set *set, const struct address *address, bool opening,
                                           uint16_t port, const struct rule **ret_held)
{
  struct prefix whole = prefix_of_address(address);
  struct prefix views[PREFIX_VIEWS_MAX];
  size_t count = prefix_views(&whole, views);
  const struct rule *rule = NULL;
  for (size_t i = 0; i < count && !rule; i++)
    rule = find_in_view(set, &views[i].network, opening ? address : NULL, port, ret_held);
  return rule;
}

static const struct rule *find_deny_for_address(const struct policy *policy, const struct address *address,
                                                uint16_t port)
{
  const struct rule *held = NULL;
  const struct rule *rule = find_for_address(policy->deny_index, address, false, port, &held);
  return rule ? rule : with_port(policy->deny_index, rule_set_any(policy->deny_index), port);
}

static bool is_loopback_or_unspecified(const struct address *address)
{
  struct prefix range;
  enum address_class address_class;
  return special_range(address, &range, &address_class) &&
         (address_class == CLASS_LOOPBACK || address_class == CLASS_UNSPECIFIED);
}

static bool is_zero(const struct address *address)
{
  static const uint8_t zero[sizeof address->bytes];
  return memcmp(address->bytes, zero, sizeof zero) == 0;
}

/* The kernel dials the unspecified address as loopback, so it reaches what listens on either. */
static bool reaches_listener(const struct address *address, const struct address *listener,
                             const struct own_listeners *own)
{
  if (address_equal(address, listener))
    return true;
  if (is_zero(address) && is_loopback_or_unspecified(listener))
    return true;
  if (!is_zero(listener))
    return false;
  if (is_loopback_or_unspecified(address))
    return true;
  for (size_t i = 0; i < own->interface_count; i++) {
    struct address interface = address_unmap(&own->interfaces[i]);
    if (address_equal(address, &interface))
      return true;
  }
  return false;
}

static bool is_own(const struct address *address, uint16_t port, const struct own_listeners *own)
{
  if (!own)
    return false;
  struct prefix whole = prefix_of_address(address);
  struct prefix views[PREFIX_VIEWS_MAX];
  size_t views_count = prefix_views(&whole, views);
  for (size_t i = 0; i < own->count; i++) {
    struct address listener = address_unmap(&own->listeners[i].endpoint.address);
    for (size_t view = 0; own->listeners[i].endpoint.port == port && view < views_count; view++) {
      if (reaches_listener(&views[view].network, &listener, own))
        return true;
    }
  }
  return false;
}

static struct verdict refuse(enum reason reason, const struct rule *rule)
{
  return (struct verdict){.reason = reason, .rule = rule};
}

static struct verdict refuse_class(const struct rule *rule, const struct address *address)
{
  struct verdict verdict = refuse(REASON_BLOCKED_ADDRESS, rule);
  verdict.address_class = address_classify(address);
  return verdict;
}

static struct verdict decide_literal(const struct policy *policy, const struct address *address, uint16_t port,
                                     const struct own_listeners *own)
{
  const struct rule *deny = find_deny_for_address(policy, address, port);
  if (deny)
    return refuse(REASON_DENIED, deny);
  const struct rule *held = NULL;
  const struct rule *allow = find_for_address(policy->allow_index, address, true, port, &held);
  if (!held)
    return refuse(REASON_NOT_ALLOWED, NULL);
  if (is_own(address, port, own))
    return refuse(REASON_OWN_LISTENER, held);
  if (!allow)
    return refuse_class(held, address);
  return (struct verdict){.reason = REASON_NONE, .rule = allow};
}

struct verdict decide_host(const struct policy *policy, const struct host *host, uint16_t port,
                           const struct own_listeners *own)
{
  switch (host->kind) {
  case HOST_ADDRESS:
    return decide_literal(policy, &host->address, port, own);
  case HOST_NAME:
    break;
  case HOST_ODD_ADDRESS:
  default:
    return refuse(REASON_ODD_ADDRESS, NULL);
  }
  const struct rule *deny = find_for_name(policy->deny_index, host->text, port);
  if (deny)
    return refuse(REASON_DENIED, deny);
  const struct rule *allow = find_for_name(policy->allow_index, host->text, port);
  if (!allow)
    return refuse(REASON_NOT_ALLOWED, NULL);
  return (struct verdict){.reason = REASON_NONE, .rule = allow};
}

/* A name opens special classes by resolves_to only, and metadata addresses by nothing. */
static bool rule_opens(const struct rule *rule, const struct address *address)
{
  enum address_class address_class = address_classify(address);
  if (address_class == CLASS_PUBLIC)
    return true;
  if (!rule)
    return false;
  if (rule->kind == RULE_PREFIX)
    return prefix_opens(&rule->prefix, address);
  for (size_t i = 0; i < rule->resolves_to_count && address_class != CLASS_METADATA; i++) {
    if (prefix_opens(&rule->resolves_to[i], address))
      return true;
  }
  return false;
}

struct verdict decide_address(const struct policy *policy, const struct rule *allowed_by, const struct address *address,
                              uint16_t port, const struct own_listeners *own)
{
  const struct rule *deny = find_deny_for_address(policy, address, port);
  if (deny)
    return refuse(REASON_DENIED, deny);
  if (is_own(address, port, own))
    return refuse(REASON_OWN_LISTENER, allowed_by);
  if (!rule_opens(allowed_by, address))
    return refuse_class(allowed_by, address);
  return (struct verdict){.reason = REASON_NONE, .rule = allowed_by};
}

size_t decide_suggest(const struct host *host, uint16_t port, char *ret, size_t size)
{
  if (size > 0)
    ret[0] = '\0';
  if (host->kind != HOST_NAME && host->kind != HOST_ADDRESS)
    return 0;
  struct host suggested = *host;
  if (host->kind == HOST_ADDRESS) {
    if (address_classify(&host->address) == CLASS_METADATA)
      return 0;
    /* An entry is written as the IPv4 address that a mapped form stands for. */
    suggested.address = address_unmap(&host->address);
    address_format(&suggested.address, suggested.text, sizeof suggested.text);
  }
  char text[HOST_TEXT_SIZE + sizeof "[]:65535"];
  host_format(&suggested, port, text, sizeof text);
  size_t length = strlen(text);
  if (length >= size)
    return 0;
  memcpy(ret, text, length + 1);
  return length;
}
