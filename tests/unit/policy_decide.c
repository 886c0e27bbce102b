#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/egress/decide.h"
#include "policy/egress/entry.h"
#include "shared/clock.h"

static void add_rules(const char *const *entries, enum entry_list list, struct rule **ret, size_t *ret_count)
{
  size_t count = 0;
  while (entries[count])
    count++;
  *ret = calloc(count + 1, sizeof **ret);
  cr_assert_not_null(*ret);
  for (size_t i = 0; i < count; i++) {
    struct entry_problem problem;
    cr_assert_eq(entry_parse(entries[i], strlen(entries[i]), list, &(*ret)[i], &problem), 0, "%s", entries[i]);
    (*ret)[i].line = (unsigned)i + 1;
  }
  *ret_count = count;
}

static struct policy make_policy(const char *const *allow, const char *const *deny)
{
  struct policy policy = {.name = strdup("p"), .message = strdup("")};
  add_rules(allow, ENTRY_ALLOW, &policy.allow, &policy.allow_count);
  add_rules(deny, ENTRY_DENY, &policy.deny, &policy.deny_count);
  cr_assert_eq(policy_index(&policy), 0);
  return policy;
}

static struct verdict ask(const struct policy *policy, const char *authority, const struct own_listeners *own)
{
  struct host host;
  uint16_t port;
  cr_assert_eq(authority_parse(authority, strlen(authority), 443, &host, &port), 0, "%s", authority);
  return decide_host(policy, &host, port, own);
}

static const char *const no_rules[] = {NULL};

static const char *const allow[] = {
  "allowed.test",
  "*.wild.test:443",
  "*.deep.wild.test:8443",
  "multi.test:443,8000-8010",
  "10.20.0.0/16:5432",
  "192.168.0.0/15:5432",
  "0.0.0.0/0:443",
  "10.0.0.0/7:443",
  "169.254.0.0/16:80",
  "169.254.169.254:8080",
  "[fd00:ec2::254]:80",
  "[2001:db8::/32]:443",
  "[2606:4700::]/32:443",
  "127.0.0.0/8:3000-3128",
  "[::1]:3000-3128",
  "[2002:a14::]/32:5432",
  "0.0.0.0:3000-3128",
  "denied.test",
  "172.16.0.0/12:80",
  "gone.wild.test:443",
  NULL,
};
static const char *const deny[] = {
  "denied.test", "*.gone.wild.test", "gone.wild.test:443", "203.0.113.0/24",
  "*:22",        "1.2.3.4:443",      "172.16.5.0/24",      NULL,
};

static const struct decision {
  const char *authority;
  enum reason reason;
  int line; /* of the rule; 0: none */
  enum address_class address_class;
} decisions[] = {
  {"allowed.test:443", REASON_NONE, 1, 0},
  {"ALLOWED.TEST.:80", REASON_NONE, 1, 0},
  {"allowed.test:8080", REASON_NOT_ALLOWED, 0, 0},
  {"sub.allowed.test:443", REASON_NOT_ALLOWED, 0, 0},
  {"allowed.test.denied.test:443", REASON_NOT_ALLOWED, 0, 0},
  {"allowedxtest:443", REASON_NOT_ALLOWED, 0, 0},
  {"xallowed.test:443", REASON_NOT_ALLOWED, 0, 0},
  {"wild.test:443", REASON_NOT_ALLOWED, 0, 0},
  {"a.wild.test:443", REASON_NONE, 2, 0},
  {"a.b.c.wild.test:443", REASON_NONE, 2, 0},
  {"xwild.test:443", REASON_NOT_ALLOWED, 0, 0},
  {"a.deep.wild.test:8443", REASON_NONE, 3, 0},
  {"a.deep.wild.test:443", REASON_NONE, 2, 0},
  {"a.wild.test:80", REASON_NOT_ALLOWED, 0, 0},
  {"multi.test:8010", REASON_NONE, 4, 0},
  {"multi.test:8011", REASON_NOT_ALLOWED, 0, 0},
  {"multi.test:80", REASON_NOT_ALLOWED, 0, 0},
  /* deny always wins */
  {"denied.test:443", REASON_DENIED, 1, 0},
  {"gone.wild.test:443", REASON_DENIED, 3, 0},
  {"x.gone.wild.test:443", REASON_DENIED, 2, 0},
  {"allowed.test:22", REASON_DENIED, 5, 0},
  {"8.8.8.8:22", REASON_DENIED, 5, 0},
  {"nowhere.test:22", REASON_DENIED, 5, 0},
  {"203.0.113.9:443", REASON_DENIED, 4, 0},
  {"[::ffff:203.0.113.9]:443", REASON_DENIED, 4, 0},
  {"[64:ff9b::203.0.113.9]:443", REASON_DENIED, 4, 0},
  {"[2002:cb00:7109::]:443", REASON_DENIED, 4, 0},
  {"1.2.3.4:443", REASON_DENIED, 6, 0},
  {"172.16.5.1:80", REASON_DENIED, 7, 0},
  {"172.16.6.1:80", REASON_NONE, 19, 0},
  /* odd spellings, whatever the rules say */
  {"127.1:3000", REASON_ODD_ADDRESS, 0, 0},
  {"127.0.0.1.:3000", REASON_ODD_ADDRESS, 0, 0},
  {"2130706433:22", REASON_ODD_ADDRESS, 0, 0},
  /* literals */
  {"8.8.8.8:443", REASON_NONE, 7, 0},
  {"8.8.8.8:80", REASON_NOT_ALLOWED, 0, 0},
  {"10.20.1.2:5432", REASON_NONE, 5, 0},
  {"[::ffff:10.20.1.2]:5432", REASON_NONE, 5, 0},
  {"[64:ff9b::10.20.1.2]:5432", REASON_NONE, 5, 0},
  {"[::10.20.1.2]:5432", REASON_BLOCKED_ADDRESS, 5, CLASS_RESERVED},
  {"[2002:a14:102::]:5432", REASON_NONE, 16, 0},
  {"10.21.1.2:5432", REASON_NOT_ALLOWED, 0, 0},
  {"10.21.1.2:443", REASON_BLOCKED_ADDRESS, 8, CLASS_PRIVATE},
  {"11.1.1.1:443", REASON_NONE, 8, 0},
  {"127.0.0.1:443", REASON_BLOCKED_ADDRESS, 7, CLASS_LOOPBACK},
  {"192.168.1.1:5432", REASON_BLOCKED_ADDRESS, 6, CLASS_PRIVATE},
  {"192.169.1.1:5432", REASON_NONE, 6, 0},
  {"169.254.1.1:80", REASON_NONE, 9, 0},
  {"169.254.169.254:80", REASON_BLOCKED_ADDRESS, 9, CLASS_METADATA},
  {"169.254.169.254:8080", REASON_NONE, 10, 0},
  {"[::ffff:169.254.169.254]:8080", REASON_BLOCKED_ADDRESS, 10, CLASS_METADATA},
  {"[64:ff9b::169.254.169.254]:8080", REASON_BLOCKED_ADDRESS, 10, CLASS_METADATA},
  {"[2002:a9fe:a9fe::]:8080", REASON_BLOCKED_ADDRESS, 10, CLASS_METADATA},
  {"169.254.169.254:443", REASON_BLOCKED_ADDRESS, 7, CLASS_METADATA},
  {"[fd00:ec2::254]:80", REASON_NONE, 11, 0},
  {"[fd00:ec2::253]:80", REASON_NOT_ALLOWED, 0, 0},
  {"[2001:db8::5]:443", REASON_NONE, 12, 0},
  {"[2606:4700::1111]:443", REASON_NONE, 13, 0},
  {"[2606:4701::1111]:443", REASON_NOT_ALLOWED, 0, 0},
  {"127.5.5.5:3000", REASON_NONE, 14, 0},
  {"[::1]:3000", REASON_NONE, 15, 0},
};

Test(policy_decide, hosts)
{
  struct policy policy = make_policy(allow, deny);
  for (size_t i = 0; i < sizeof decisions / sizeof decisions[0]; i++) {
    const struct decision *row = &decisions[i];
    struct verdict verdict = ask(&policy, row->authority, NULL);
    cr_expect_eq(verdict.reason, row->reason, "%s: reason %d", row->authority, verdict.reason);
    cr_expect_eq(verdict.rule ? (int)verdict.rule->line : 0, row->line, "%s: line %u", row->authority,
                 verdict.rule ? verdict.rule->line : 0);
    if (row->reason == REASON_BLOCKED_ADDRESS)
      cr_expect_eq(verdict.address_class, row->address_class, "%s", row->authority);
  }
  policy_clear(&policy);
}

static const struct resolved {
  const char *name;
  const char *address;
  enum reason reason;
} resolved[] = {
  {"plain.test:443", "8.8.8.8", REASON_NONE},
  {"plain.test:443", "64:ff9b::8.8.8.8", REASON_NONE},
  {"plain.test:443", "127.0.0.1", REASON_BLOCKED_ADDRESS},
  {"plain.test:443", "10.0.0.1", REASON_BLOCKED_ADDRESS},
  {"plain.test:443", "0.0.0.0", REASON_BLOCKED_ADDRESS},
  {"plain.test:443", "169.254.1.1", REASON_BLOCKED_ADDRESS},
  {"plain.test:443", "169.254.169.254", REASON_BLOCKED_ADDRESS},
  {"plain.test:443", "::ffff:169.254.169.254", REASON_BLOCKED_ADDRESS},
  {"plain.test:443", "64:ff9b::169.254.169.254", REASON_BLOCKED_ADDRESS},
  {"plain.test:443", "fd00:ec2::254", REASON_BLOCKED_ADDRESS},
  {"plain.test:443", "2002:808:808::", REASON_BLOCKED_ADDRESS},
  {"plain.test:443", "203.0.113.1", REASON_DENIED},
  {"plain.test:443", "::ffff:1.2.3.4", REASON_DENIED},
  {"plain.test:443", "64:ff9b::1.2.3.4", REASON_DENIED},
  {"plain.test:443", "2002:102:304::", REASON_DENIED},
  {"plain.test:443", "1.2.3.4", REASON_DENIED},
  {"db.test:5432", "10.20.5.5", REASON_NONE},
  {"db.test:5432", "::ffff:10.20.5.5", REASON_NONE},
  {"db.test:5432", "8.8.8.8", REASON_NONE},
  {"db.test:5432", "1.2.3.4", REASON_NONE}, /* denied on 443 only */
  {"db.test:5432", "10.21.5.5", REASON_BLOCKED_ADDRESS},
  {"db.test:5432", "10.20.6.6", REASON_DENIED},
  {"db.test:5432", "127.0.0.1", REASON_BLOCKED_ADDRESS},
  {"db.test:5432", "fd12::1", REASON_NONE},
  {"db.test:5432", "fd00:ec2::254", REASON_BLOCKED_ADDRESS},
  {"link.test:80", "169.254.9.9", REASON_NONE},
  {"link.test:80", "169.254.169.254", REASON_BLOCKED_ADDRESS},
};

Test(policy_decide, addresses_of_names)
{
  static const char *const names[] = {"plain.test:443", "db.test:5432 -> 10.20.0.0/16,fd00::/8",
                                      "link.test:80 -> 169.254.0.0/16", NULL};
  static const char *const denied[] = {"203.0.113.0/24", "1.2.3.4:443", "10.20.6.0/24", NULL};
  struct policy policy = make_policy(names, denied);
  for (size_t i = 0; i < sizeof resolved / sizeof resolved[0]; i++) {
    struct host host;
    uint16_t port;
    struct address address;
    cr_assert_eq(authority_parse(resolved[i].name, strlen(resolved[i].name), 0, &host, &port), 0);
    cr_assert_eq(address_parse(resolved[i].address, &address), 0);
    struct verdict named = decide_host(&policy, &host, port, NULL);
    cr_assert_eq(named.reason, REASON_NONE);
    struct verdict verdict = decide_address(&policy, named.rule, &address, port, NULL);
    cr_expect_eq(verdict.reason, resolved[i].reason, "%s at %s: reason %d", resolved[i].name, resolved[i].address,
                 verdict.reason);
  }
  policy_clear(&policy);
}

Test(policy_decide, no_rule_lets_a_name_resolve_to_a_metadata_address)
{
  static const char *const names[] = {"a.test:80 -> 10.0.0.1", NULL};
  struct policy policy = make_policy(names, no_rules);
  struct verdict named = ask(&policy, "a.test:80", NULL);
  struct address metadata;
  cr_assert_eq(address_parse("169.254.169.254", &metadata), 0);
  /* No entry can say this; the decision does not rest on that. */
  policy.allow[0].resolves_to[0] = (struct prefix){.network = metadata, .length = 32};
  cr_expect_eq(decide_address(&policy, named.rule, &metadata, 80, NULL).reason, REASON_BLOCKED_ADDRESS);
  policy_clear(&policy);
}

Test(policy_decide, an_address_without_a_rule_must_be_public)
{
  struct policy policy = make_policy(no_rules, no_rules);
  struct address public_one, private_one;
  cr_assert_eq(address_parse("8.8.8.8", &public_one), 0);
  cr_assert_eq(address_parse("10.0.0.1", &private_one), 0);
  cr_expect_eq(decide_address(&policy, NULL, &public_one, 443, NULL).reason, REASON_NONE);
  cr_expect_eq(decide_address(&policy, NULL, &private_one, 443, NULL).reason, REASON_BLOCKED_ADDRESS);
  cr_expect_eq(ask(&policy, "a.test:443", NULL).reason, REASON_NOT_ALLOWED);
  policy_clear(&policy);
}

static struct own_listener listener_at(const char *address, uint16_t port)
{
  struct own_listener listener = {.endpoint.port = port};
  cr_assert_eq(address_parse(address, &listener.endpoint.address), 0);
  return listener;
}

static const struct own_row {
  const char *authority;
  enum reason with_exact, with_any4, with_any6;
} own_rows[] = {
  {"127.0.0.1:3128", REASON_OWN_LISTENER, REASON_OWN_LISTENER, REASON_OWN_LISTENER},
  {"[::ffff:127.0.0.1]:3128", REASON_OWN_LISTENER, REASON_OWN_LISTENER, REASON_OWN_LISTENER},
  {"0.0.0.0:3128", REASON_OWN_LISTENER, REASON_OWN_LISTENER, REASON_OWN_LISTENER},
  {"127.9.9.9:3128", REASON_NONE, REASON_OWN_LISTENER, REASON_OWN_LISTENER},
  {"[::1]:3128", REASON_NONE, REASON_OWN_LISTENER, REASON_OWN_LISTENER},
  {"127.0.0.1:3127", REASON_NONE, REASON_NONE, REASON_NONE},
  {"10.9.9.9:3128", REASON_NONE, REASON_OWN_LISTENER, REASON_OWN_LISTENER},
  {"[::ffff:10.9.9.9]:3128", REASON_NONE, REASON_OWN_LISTENER, REASON_OWN_LISTENER},
  {"10.9.9.8:3128", REASON_NONE, REASON_NONE, REASON_NONE},
};

Test(policy_decide, own_listeners_are_never_a_destination)
{
  static const char *const all[] = {"127.0.0.0/8:3000-3128",
                                    "[::1]:3000-3128",
                                    "0.0.0.0:3128",
                                    "10.9.0.0/16:3128",
                                    "name.test:3128 -> 127.0.0.0/8",
                                    NULL};
  struct policy policy = make_policy(all, no_rules);
  struct address interface;
  cr_assert_eq(address_parse("10.9.9.9", &interface), 0);
  const char *listening[] = {"127.0.0.1", "0.0.0.0", "::"};
  for (size_t kind = 0; kind < 3; kind++) {
    struct own_listener listener = listener_at(listening[kind], 3128);
    struct own_listeners own = {&listener, 1, &interface, 1};
    for (size_t i = 0; i < sizeof own_rows / sizeof own_rows[0]; i++) {
      const struct own_row *row = &own_rows[i];
      enum reason expected = kind == 0 ? row->with_exact : kind == 1 ? row->with_any4 : row->with_any6;
      cr_expect_eq(ask(&policy, row->authority, &own).reason, expected, "%s with %s", row->authority, listening[kind]);
    }
    struct verdict named = ask(&policy, "name.test:3128", &own);
    cr_assert_eq(named.reason, REASON_NONE);
    cr_expect_eq(decide_address(&policy, named.rule, &listener.endpoint.address, 3128, &own).reason,
                 REASON_OWN_LISTENER);
  }
  policy_clear(&policy);
}

static const struct suggestion {
  const char *authority;
  const char *entry;
} suggestions[] = {
  {"a.test:8080", "a.test:8080"},
  {"10.0.0.1:5432", "10.0.0.1:5432"},
  {"[2001:DB8::1]:443", "[2001:db8::1]:443"},
  {"[::ffff:10.0.0.1]:443", "10.0.0.1:443"},
  {"[64:ff9b::10.0.0.1]:443", "[64:ff9b::a00:1]:443"},
  {"[2002:7f00:1::]:443", "[2002:7f00:1::]:443"},
  {"0.0.0.0:80", "0.0.0.0:80"},
  {"169.254.169.254:80", ""},
  {"[::ffff:169.254.169.254]:80", ""},
  {"[2002:a9fe:a9fe::]:80", ""},
  {"127.1:80", ""},
  {"127.0.0.1.:80", ""},
};

Test(policy_decide, a_suggested_entry_permits_what_was_asked)
{
  for (size_t i = 0; i < sizeof suggestions / sizeof suggestions[0]; i++) {
    const char *authority = suggestions[i].authority;
    struct host host;
    uint16_t port;
    char entry[RULE_TEXT_SIZE];
    cr_assert_eq(authority_parse(authority, strlen(authority), 0, &host, &port), 0);
    size_t length = decide_suggest(&host, port, entry, sizeof entry);
    cr_expect_str_eq(entry, suggestions[i].entry);
    cr_expect_eq(length, strlen(entry));
    if (length == 0)
      continue;
    const char *const entries[] = {entry, NULL};
    struct policy policy = make_policy(entries, no_rules);
    cr_expect_eq(decide_host(&policy, &host, port, NULL).reason, REASON_NONE, "%s", authority);
    policy_clear(&policy);
  }
  struct host host;
  char small[8];
  cr_assert_eq(host_parse("long.example.test", 17, &host), 0);
  cr_expect_eq(decide_suggest(&host, 443, small, sizeof small), 0);
  cr_expect_str_empty(small);
}

/* Names, wildcards and networks, as many as a large blocklist has. */
static struct policy make_large_policy(size_t count)
{
  struct policy policy = {.name = strdup("large"), .message = strdup("")};
  policy.allow = calloc(count, sizeof *policy.allow);
  cr_assert_not_null(policy.allow);
  for (size_t i = 0; i < count; i++) {
    char text[64];
    static const char *const forms[] = {"host%zu.example.test:443", "*.zone%zu.example.test:443"};
    if (i % 3 == 2)
      snprintf(text, sizeof text, "%zu.%zu.%zu.0/24:443", 20 + (i >> 16), (i >> 8) & 255, i & 255);
    else
      snprintf(text, sizeof text, i % 3 == 0 ? forms[0] : forms[1], i);
    struct entry_problem problem;
    cr_assert_eq(entry_parse(text, strlen(text), ENTRY_ALLOW, &policy.allow[i], &problem), 0, "%s", text);
  }
  policy.allow_count = count;
  cr_assert_eq(policy_index(&policy), 0);
  return policy;
}

static uint64_t time_decisions(const struct policy *policy, size_t rounds)
{
  struct host name, address;
  cr_assert_eq(host_parse("a.b.c.d.zone99997.example.test", 30, &name), 0);
  cr_assert_eq(host_parse("20.3.4.5", 8, &address), 0);
  uint64_t begin = clock_monotonic_ms();
  for (size_t i = 0; i < rounds; i++) {
    decide_host(policy, &name, 443, NULL);
    decide_host(policy, &address, 443, NULL);
  }
  return clock_monotonic_ms() - begin;
}

Test(policy_decide, time_does_not_depend_on_the_number_of_rules)
{
  struct policy small = make_large_policy(100), large = make_large_policy(100000);
  cr_expect_eq(ask(&large, "host99999.example.test:443", NULL).reason, REASON_NONE);
  cr_expect_eq(ask(&large, "x.y.zone99997.example.test:443", NULL).reason, REASON_NONE);
  cr_expect_eq(ask(&large, "zone99997.example.test:443", NULL).reason, REASON_NOT_ALLOWED);
  cr_expect_eq(ask(&large, "host1.example.test:443", NULL).reason, REASON_NOT_ALLOWED);
  cr_expect_eq(ask(&large, "20.0.5.7:443", NULL).reason, REASON_NONE);
  cr_expect_eq(ask(&large, "20.0.6.7:443", NULL).reason, REASON_NOT_ALLOWED);
  /* A walk over the rules would take a thousand times as long; caches and a busy machine account for far less. */
  enum { ROUNDS = 20000, SLACK_MS = 100, FACTOR = 20 };
  uint64_t few = time_decisions(&small, ROUNDS), many = time_decisions(&large, ROUNDS);
  cr_expect(many <= few * FACTOR + SLACK_MS, "%llu ms with few rules, %llu ms with many", (unsigned long long)few,
            (unsigned long long)many);
  policy_clear(&small);
  policy_clear(&large);
}
