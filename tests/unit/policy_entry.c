#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/egress/entry.h"
#include "policy/egress/prefix.h"

/* "kind host-or-network ports [-> networks]", to compare in one string. */
static const char *describe(const struct rule *rule, char *ret, size_t size)
{
  static const char *const kinds[] = {"host", "wildcard", "prefix", "any"};
  char network[ADDRESS_TEXT_SIZE];
  int used = snprintf(ret, size, "%s %s", kinds[rule->kind],
                      rule->kind == RULE_PREFIX ? prefix_format(&rule->prefix, network, sizeof network)
                      : rule->host              ? rule->host
                                                : "*");
  for (size_t i = 0; i < rule->port_count; i++)
    used += snprintf(ret + used, size - (size_t)used, " %u-%u", rule->ports[i].first, rule->ports[i].last);
  for (size_t i = 0; i < rule->resolves_to_count; i++)
    used +=
      snprintf(ret + used, size - (size_t)used, " > %s", prefix_format(&rule->resolves_to[i], network, sizeof network));
  return ret;
}

static const struct entry_row {
  enum entry_list list;
  const char *text;
  const char *rule;
} accepted[] = {
  {ENTRY_ALLOW, "github.example", "host github.example 80-80 443-443"},
  {ENTRY_ALLOW, "  GitHub.Example.\t", "host github.example 80-80 443-443"},
  {ENTRY_DENY, "github.example", "host github.example 0-65535"},
  {ENTRY_DENY, "github.example:443", "host github.example 443-443"},
  {ENTRY_ALLOW, "*.example.net:443", "wildcard example.net 443-443"},
  {ENTRY_ALLOW, "*.test", "wildcard test 80-80 443-443"},
  {ENTRY_ALLOW, "files.example.org:443,8443", "host files.example.org 443-443 8443-8443"},
  {ENTRY_ALLOW, "files.example.org:8000-8100,1", "host files.example.org 8000-8100 1-1"},
  {ENTRY_ALLOW, "10.20.0.0/16:5432", "prefix 10.20.0.0/16 5432-5432"},
  {ENTRY_ALLOW, "10.20.0.1", "prefix 10.20.0.1 80-80 443-443"},
  {ENTRY_ALLOW, "0.0.0.0/0:443", "prefix 0.0.0.0/0 443-443"},
  {ENTRY_ALLOW, "10.20.0.1/32", "prefix 10.20.0.1 80-80 443-443"},
  {ENTRY_ALLOW, "169.254.169.254:80", "prefix 169.254.169.254 80-80"},
  {ENTRY_ALLOW, "[2001:DB8::1]:443", "prefix 2001:db8::1 443-443"},
  {ENTRY_ALLOW, "[2001:db8::]/32:443", "prefix 2001:db8::/32 443-443"},
  {ENTRY_ALLOW, "[2001:db8::/32]:443", "prefix 2001:db8::/32 443-443"},
  {ENTRY_ALLOW, "2001:db8::/32:443", "prefix 2001:db8::/32 443-443"},
  {ENTRY_DENY, "2001:db8::/32", "prefix 2001:db8::/32 0-65535"},
  {ENTRY_DENY, "*", "any * 0-65535"},
  {ENTRY_DENY, "*:22", "any * 22-22"},
  {ENTRY_DENY, "203.0.113.0/24", "prefix 203.0.113.0/24 0-65535"},
  {ENTRY_DENY, "fd00:ec2::/32", "prefix fd00:ec2::/32 0-65535"},
  {ENTRY_ALLOW, "db.internal:5432 -> 10.20.0.0/16", "host db.internal 5432-5432 > 10.20.0.0/16"},
  {ENTRY_ALLOW, "*.internal->10.20.0.0/16, fd00::/8,[fd01::1]",
   "wildcard internal 80-80 443-443 > 10.20.0.0/16 > fd00::/8 > fd01::1"},
  {ENTRY_ALLOW, "a.test:1 -> 127.0.0.1/32", "host a.test 1-1 > 127.0.0.1"},
};

Test(policy_entry, entries_become_rules)
{
  for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
    const struct entry_row *row = &accepted[i];
    struct rule rule;
    struct entry_problem problem = {""};
    char text[512];
    cr_assert_eq(entry_parse(row->text, strlen(row->text), row->list, &rule, &problem), 0, "%s: %s", row->text,
                 problem.text);
    cr_expect_str_eq(describe(&rule, text, sizeof text), row->rule);
    rule_clear(&rule);
  }
}

static const struct refusal_row {
  enum entry_list list;
  const char *text;
  const char *said; /* part of the problem's text */
} refused[] = {
  {ENTRY_ALLOW, "", "empty"},
  {ENTRY_ALLOW, "   ", "empty"},
  {ENTRY_ALLOW, "*", "deny only"},
  {ENTRY_ALLOW, "*:443", "deny only"},
  {ENTRY_ALLOW, "https://github.example/", "not a URL"},
  {ENTRY_ALLOW, "github.example/path", "no path"},
  {ENTRY_ALLOW, "user@github.example", "user name"},
  {ENTRY_ALLOW, "127.1", "never match"},
  {ENTRY_ALLOW, "0x7f000001:443", "never match"},
  {ENTRY_ALLOW, "127.0.0.1.", "never match"},
  {ENTRY_ALLOW, "*.2.3.4", "never match"},
  {ENTRY_ALLOW, "*.1.2.3.4", "can never match an address"},
  {ENTRY_ALLOW, "a..b", "no host"},
  {ENTRY_ALLOW, "*.", "wildcard"},
  {ENTRY_ALLOW, "*.*.net", "wildcard"},
  {ENTRY_ALLOW, "foo*.example.net", "wildcard"},
  {ENTRY_ALLOW, "**.example.net", "wildcard"},
  {ENTRY_ALLOW, "*example.net", "wildcard"},
  {ENTRY_ALLOW,
   "b\xc3\xbc"
   "cher.example",
   "A-label"},
  {ENTRY_ALLOW, "a%20b", "percent"},
  {ENTRY_ALLOW, "\"a.test\"", "quotes"},
  {ENTRY_ALLOW, "a.test b.test", "no host"},
  {ENTRY_ALLOW, "a.test:", "no port"},
  {ENTRY_ALLOW, "a.test:0", "no port"},
  {ENTRY_ALLOW, "a.test:65536", "no port"},
  {ENTRY_ALLOW, "a.test:080", "no port"},
  {ENTRY_ALLOW, "a.test:80,", "no port"},
  {ENTRY_ALLOW, "a.test:80, 443", "no port"},
  {ENTRY_ALLOW, "a.test:*", "no port"},
  {ENTRY_ALLOW, "a.test:443-80", "before it begins"},
  {ENTRY_ALLOW, "a.test:1-2-3", "no port"},
  {ENTRY_ALLOW, "a.test:80:443", "more than one colon"},
  {ENTRY_ALLOW, "::1", "brackets"},
  {ENTRY_ALLOW, "2001:db8::1:443", "brackets"},
  {ENTRY_ALLOW, "[::1", "without"},
  {ENTRY_ALLOW, "[]", "IPv6"},
  {ENTRY_ALLOW, "[a.test]", "IPv6"},
  {ENTRY_ALLOW, "[127.0.0.1]:80", "IPv6"},
  {ENTRY_ALLOW, "[fe80::1%lo]", "no address"},
  {ENTRY_ALLOW, "[::1]443", "follows"},
  {ENTRY_ALLOW, "10.20.0.1/16", "10.20.0.0/16"},
  {ENTRY_ALLOW, "10.20.0.0/33", "prefix length"},
  {ENTRY_ALLOW, "10.20.0.0/", "prefix length"},
  {ENTRY_ALLOW, "10.20.0.0/016", "prefix length"},
  {ENTRY_ALLOW, "10.20.0.0/-1", "prefix length"},
  {ENTRY_ALLOW, "10.20/16", "no address"},
  {ENTRY_ALLOW, "[2001:db8::]/129", "prefix length"},
  {ENTRY_ALLOW, "[::ffff:10.0.0.0]/104", "10.0.0.0/8"},
  {ENTRY_DENY, "[::ffff:10.0.0.1]", "10.0.0.1"},
  {ENTRY_ALLOW, "fd00:ec2::/48", "metadata"},
  {ENTRY_ALLOW, "10.0.0.1 -> 10.0.0.0/8", "only a name"},
  {ENTRY_DENY, "a.test -> 10.0.0.0/8", "allow entries"},
  {ENTRY_ALLOW, "a.test ->", "no address"},
  {ENTRY_ALLOW, "a.test -> b.test", "no address"},
  {ENTRY_ALLOW, "a.test -> 10.0.0.0/7", "wider"},
  {ENTRY_ALLOW, "a.test -> 0.0.0.0/0", "wider"},
  {ENTRY_ALLOW, "a.test -> 8.8.8.8", "public"},
  {ENTRY_ALLOW, "a.test -> 169.254.169.254", "metadata"},
  {ENTRY_ALLOW, "a.test -> fd00:ec2::/32", "metadata"},
  {ENTRY_ALLOW, "a.test -> 10.0.0.0/8,", "no address"},
  {ENTRY_ALLOW, "a.test -> 10.0.0.0/8 -> 10.0.0.0/8", "prefix length"},
};

Test(policy_entry, what_can_never_apply_is_refused_with_a_reason)
{
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    const struct refusal_row *row = &refused[i];
    struct rule rule;
    struct entry_problem problem = {""};
    int result = entry_parse(row->text, strlen(row->text), row->list, &rule, &problem);
    cr_expect_eq(result, -EINVAL, "%s", row->text);
    cr_expect_not_null(strstr(problem.text, row->said), "\"%s\" says: %s", row->text, problem.text);
    if (result == 0)
      rule_clear(&rule);
  }
}

Test(policy_entry, long_and_binary_entries_are_refused)
{
  char text[RULE_TEXT_SIZE + 1];
  memset(text, 'a', sizeof text);
  struct rule rule;
  struct entry_problem problem;
  cr_expect_eq(entry_parse(text, sizeof text, ENTRY_ALLOW, &rule, &problem), -EINVAL);
  cr_expect_eq(entry_parse("a\0.test", 7, ENTRY_ALLOW, &rule, &problem), -EINVAL);
  cr_expect_eq(entry_parse("10.0.0.1\0/8", 11, ENTRY_ALLOW, &rule, &problem), -EINVAL);
  cr_expect_eq(entry_parse("[::1\0]", 6, ENTRY_ALLOW, &rule, &problem), -EINVAL);
}
