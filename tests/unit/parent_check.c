#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parent/check_verdict.h"
#include "policy/egress/entry.h"

static struct rule rule_of(const char *text, enum entry_list list, unsigned line)
{
  struct rule rule;
  struct entry_problem problem;
  cr_assert_eq(entry_parse(text, strlen(text), list, &rule, &problem), 0, "%s", text);
  rule.file = "c.yaml";
  rule.line = line;
  return rule;
}

static struct policy make_policy(void)
{
  static const char *const allow[] = {"a.test", "*.wild.test", "db.test:5432 -> 10.20.0.0/16", "10.0.0.0/7:443",
                                      "c.test"};
  static const char *const deny[] = {"bad.wild.test", "203.0.113.0/24"};
  struct policy policy = {.name = strdup("agents"), .message = strdup("")};
  policy.allow_count = sizeof allow / sizeof allow[0];
  policy.deny_count = sizeof deny / sizeof deny[0];
  policy.allow = calloc(policy.allow_count, sizeof *policy.allow);
  policy.deny = calloc(policy.deny_count, sizeof *policy.deny);
  cr_assert(policy.allow && policy.deny);
  for (unsigned i = 0; i < policy.allow_count; i++)
    policy.allow[i] = rule_of(allow[i], ENTRY_ALLOW, 10 + i);
  for (unsigned i = 0; i < policy.deny_count; i++)
    policy.deny[i] = rule_of(deny[i], ENTRY_DENY, 20 + i);
  cr_assert_eq(policy_index(&policy), 0);
  return policy;
}

static const char hosts[] = "# names\n"
                            "127.0.0.1\tA.TEST. other\n"
                            "10.20.0.9 db.test # the database\n"
                            "10.0.0.1 x.wild.test\n"
                            "169.254.169.254 meta.wild.test\n"
                            "203.0.113.5 c.test\n"
                            "8.8.8.8 good.wild.test\n"
                            "127.0.0.1 good.wild.test\n"
                            "8.8.8.8 good.wild.test\n"
                            "127.1 good.wild.test\n"
                            "nonsense\n";

static const struct check_row {
  const char *authority;
  bool allowed;
  const char *said;
} rows[] = {
  {"x.a.test:443", false,
   "deny x.a.test:443: no rule allows it\n"
   "  policy   agents (as named)\n"
   "  permit   allow entry \"x.a.test:443\"\n"},
  {"y.wild.test:443", true,
   "allow y.wild.test:443\n"
   "  policy   agents (as named)\n"
   "  rule     c.yaml:11: allow \"*.wild.test\"\n"
   "  address  none in the hosts file; each one that DNS gives is judged before it is dialled\n"},
  {"bad.wild.test:443", false,
   "deny bad.wild.test:443: a rule denies it\n"
   "  policy   agents (as named)\n"
   "  rule     c.yaml:20: deny \"bad.wild.test\"\n"
   "  permit   no allow entry: deny always wins, so the rule must go or be narrowed\n"},
  {"a.test:443", false,
   "deny a.test:443: none of its addresses may be dialled\n"
   "  policy   agents (as named)\n"
   "  rule     c.yaml:10: allow \"a.test\"\n"
   "  address  127.0.0.1 (hosts file): loopback; its address is in a special range that the rule does not open\n"
   "  permit   allow entry \"a.test:443 -> 127.0.0.1\" in place of that rule\n"},
  {"x.wild.test:80", false,
   "deny x.wild.test:80: none of its addresses may be dialled\n"
   "  policy   agents (as named)\n"
   "  rule     c.yaml:11: allow \"*.wild.test\"\n"
   "  address  10.0.0.1 (hosts file): private; its address is in a special range that the rule does not open\n"
   "  permit   allow entry \"x.wild.test:80 -> 10.0.0.1\"\n"},
  {"meta.wild.test:80", false,
   "deny meta.wild.test:80: none of its addresses may be dialled\n"
   "  policy   agents (as named)\n"
   "  rule     c.yaml:11: allow \"*.wild.test\"\n"
   "  address  169.254.169.254 (hosts file): cloud metadata; reached only by a rule that is exactly this literal, and "
   "by "
   "no name\n"
   "  permit   no entry is suggested\n"},
  {"c.test:443", false,
   "deny c.test:443: none of its addresses may be dialled\n"
   "  policy   agents (as named)\n"
   "  rule     c.yaml:14: allow \"c.test\"\n"
   "  address  203.0.113.5 (hosts file): documentation; a rule denies it\n"
   "  rule     c.yaml:21: deny \"203.0.113.0/24\"\n"
   "  permit   no entry is suggested\n"},
  {"db.test:5432", true,
   "allow db.test:5432\n"
   "  policy   agents (as named)\n"
   "  rule     c.yaml:12: allow \"db.test:5432 -> 10.20.0.0/16\"\n"
   "  address  10.20.0.9 (hosts file): private; may be dialled\n"},
  {"good.wild.test:443", true,
   "allow good.wild.test:443\n"
   "  policy   agents (as named)\n"
   "  rule     c.yaml:11: allow \"*.wild.test\"\n"
   "  address  8.8.8.8 (hosts file): public; may be dialled\n"
   "  address  127.0.0.1 (hosts file): loopback; its address is in a special range that the rule does not open\n"},
  {"10.1.1.1:443", false,
   "deny 10.1.1.1:443: its address is in a special range that the rule does not open\n"
   "  policy   agents (as named)\n"
   "  rule     c.yaml:13: allow \"10.0.0.0/7:443\"\n"
   "  address  10.1.1.1: private; its address is in a special range that the rule does not open\n"
   "  permit   allow entry \"10.1.1.1:443\"\n"},
  {"127.1:443", false,
   "deny 127.1:443: it looks like an address, and is none in four plain decimals: never looked up\n"
   "  policy   agents (as named)\n"
   "  permit   no entry is suggested\n"},
};

Test(check, the_verdict_is_explained)
{
  char path[] = "/tmp/sallyport-check-XXXXXX";
  int fd = mkstemp(path);
  cr_assert_geq(fd, 0);
  cr_assert_eq(write(fd, hosts, sizeof hosts - 1), (ssize_t)(sizeof hosts - 1));
  close(fd);
  struct policy policy = make_policy();
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct check_question question = {.policy = &policy, .policy_chosen = "as named", .hosts_file = path};
    const char *authority = rows[i].authority;
    cr_assert_eq(authority_parse(authority, strlen(authority), 0, &question.host, &question.port), 0);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    cr_assert_not_null(stream);
    cr_expect_eq(check_verdict(&question, stream), rows[i].allowed, "%s", authority);
    fclose(stream);
    cr_expect_str_eq(text, rows[i].said);
    free(text);
  }
  policy_clear(&policy);
  unlink(path);
}
