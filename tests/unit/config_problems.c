#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/config_folder.h"

#define POLICY "policies:\n  - name: p\n    allow:\n" /* entries from line 4 on */
#define LISTENER "egress:\n  - { listen: 127.0.0.1:1, policy: p }\n"
#define TWO_LINES "policies: [ { name: p } ]\negress:\n" /* listeners from line 3 on */

static const struct problem_row {
  const char *yaml;
  const char *said; /* a part of the report */
} rows[] = {
  {"", "c.yaml: error: the file is empty"},
  {"# nothing\n", "c.yaml: error: the file is empty"},
  {"[ 1 ]\n", "c.yaml:1: error: the configuration is written as KEY: VALUE pairs"},
  {"user: a\n---\nuser: b\n", "c.yaml:2: error: a second document"},
  {"usre: a\n", "c.yaml:1: error: unknown key \"usre\" in the configuration: did you mean \"user\"?"},
  {"zebra: a\n", "c.yaml:1: error: unknown key \"zebra\" in the configuration, which has user, confinement"},
  {"user: a\nuser: b\n", "c.yaml:2: error: \"user\" stands in line 1 already"},
  {"user: [ a ]\n", "c.yaml:1: error: \"user\" has a list"},
  {"user: { a: b }\n", "c.yaml:1: error: \"user\" has KEY: VALUE pairs"},
  {"user:\n", "c.yaml:1: error: \"user\" has no value"},
  {"user: ~\n", "c.yaml:1: error: \"user\" has no value"},
  {"user: Root\n", "wants the name of a user"},
  {"user: \"\"\n", "wants the name of a user"},
  {"user: \"a\\0b\"\n", "c.yaml:1: error: a NUL character"},
  {"user: &x a\n", "c.yaml:1: error: anchors are not accepted"},
  {"user: &x a\naudit: *x\n", "c.yaml:2: error: aliases are not accepted"},
  {"user: !!str a\n", "c.yaml:1: error: tags are not accepted"},
  {"limits: !x {}\n", "c.yaml:1: error: tags are not accepted"},
  {"%TAG ! tag:example.org,2000:\n---\nuser: a\n", "tags are not accepted"},
  {"? [ a ]\n: b\n", "c.yaml:1: error: a key must be a word"},
  {"a: b: c\n", "c.yaml:1: error: not valid YAML"},
  {"policies:\n\t- name: p\n", "c.yaml:2: error: not valid YAML: while scanning for the next token"},
  {"a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: {l: {m: {n: {o: {p: {q: 1}}}}}}}}}}}}}}}}\n",
   "nested more than 16 deep"},
  {"audit: logs/\n", "\"audit\" wants the path of a file"},
  {"confinement: none\n", "c.yaml:1: error: \"confinement\" is \"none\", and wants required or best-effort"},
  {"confinement: best_effort\n", "did you mean \"best-effort\"?"},
  {"log: xml\n", "wants text or json"},
  {"log_level: inof\n", "did you mean \"info\"?"},
  {"workers: \"4\"\n", "wants a whole number, without quotes"},
  {"workers: 0\n", "must be 1 to 64"},
  {"workers: 65\n", "must be 1 to 64"},
  {"workers: 04\n", "wants a whole number"},
  {"workers: -1\n", "wants a whole number"},
  {"workers: 4294967297\n", "wants a whole number"},
  /* keys of later versions */
  {"control: unix:/run/x\n", "c.yaml:1: error: this version does not have \"control\" yet"},
  {"metrics: 127.0.0.1:9464\n", "this version does not have \"metrics\" yet"},
  {"clients: [ { name: a } ]\n", "this version does not have \"clients\" yet"},
  {"ingress: []\n", "this version does not have \"ingress\" yet"},
  {"sandboxes: []\n", "this version does not have \"sandboxes\" yet"},
  {"policies: [ { name: p, ssh_notice: true } ]\n", "this version does not have \"ssh_notice\" yet"},
  {"policies: [ { name: p, mode: report } ]\n", "this version does not have \"mode: report\" yet"},
  {TWO_LINES "  - { listen: 127.0.0.1:1, policy: p, protocols: [ http, socks5 ] }\n",
   "c.yaml:3: error: this version does not have \"protocols: socks5\" yet"},
  {TWO_LINES "  - { listen: 127.0.0.1:1, policy: p, upstream_proxy: \"http://x\" }\n",
   "this version does not have \"upstream_proxy\" yet"},
  {TWO_LINES "  - { listen: 127.0.0.1:1, policy: p, authenticate: required }\n",
   "this version does not have \"authenticate: required\" yet"},
  {TWO_LINES "  - { listen: unix:/run/x, policy: p }\n", "this version does not have Unix sockets"},
  {TWO_LINES "  - { listen: fd:x, policy: p }\n", "this version does not have Unix sockets and socket activation"},
  /* resolver */
  {"resolver: { nameservers: sytem }\n", "did you mean \"system\"?"},
  {"resolver: { nameservers: 192.0.2.53 }\n", "wants a list, as in [ \"192.0.2.53\" ]"},
  {"user: root\n", "the children must not be"},
  {"resolver: { nameservers: [] }\n", "\"nameservers\" is empty"},
  {"resolver: { nameservers: [ ns.test:53 ] }\n", "nameserver \"ns.test:53\""},
  {"resolver: { nameservers: [ \"127.1:53\" ] }\n", "nameserver \"127.1:53\""},
  {"resolver: { nameservers: [ 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1 ] }\n",
   "more than 8 items"},
  {"resolver: { hosts_file: missing }\n", "c.yaml:1: error: cannot read"},
  /* policies */
  {"policies: { name: p }\n", "\"policies\" wants a list"},
  {"policies: [ p ]\n", "a policy is written as KEY: VALUE pairs"},
  {"policies: [ {} ]\n", "a policy needs \"name\""},
  {"policies: [ { name: Agents } ]\n", "policy name \"Agents\""},
  {"policies: [ { name: -a } ]\n", "policy name \"-a\""},
  {"policies:\n  - name: a\n  - name: a\n", "c.yaml:3: error: a policy \"a\" stands in line 2 already"},
  {"policies: [ { name: p, message: \"a\\nb\" } ]\n", "one line without control characters"},
  {"policies: [ { name: p, message: \"a\\e[31m\" } ]\n", "one line without control characters"},
  {POLICY "      - github.example: 443\n", "c.yaml:4: error: unknown key \"github.example\" in an entry"},
  {POLICY "      - *.example.net\n", "quote an entry that begins with \"*\""},
  {POLICY "      - a..b\n", "c.yaml:4: error: entry \"a..b\""},
  {POLICY "      - \"*\"\n", "deny only"},
  {POLICY "      -\n", "\"allow\" has no value"},
  {POLICY "      - [ a.test ]\n", "\"allow\" has a list"},
  {POLICY "      - {}\n", "needs \"host\" or \"list\""},
  {POLICY "      - { ports: [ 1 ] }\n", "needs \"host\" or \"list\""},
  {POLICY "      - { host: a.test, ports: [] }\n", "\"ports\" is empty"},
  {POLICY "      - { host: a.test, ports: [ 0 ] }\n", "no port"},
  {POLICY "      - { host: a.test, ports: 443 }\n", "\"ports\" wants a list"},
  {POLICY "      - { host: \"a.test:443\" }\n", "\"host\" is the host alone"},
  {POLICY "      - { host: \"a.test -> 10.0.0.0/8\" }\n", "\"host\" is the host alone"},
  {POLICY "      - { host: a.test, list: x }\n", "\"list\" stands alone"},
  {POLICY "      - { list: missing.list }\n", "c.yaml:4: error: cannot read missing.list"},
  {"policies:\n  - name: p\n    deny:\n      - { host: a.test, resolves_to: [ 10.0.0.0/8 ] }\n", "allow entries"},
  /* listeners */
  {TWO_LINES "  - {}\n", "an egress listener needs \"listen\""},
  {TWO_LINES "  - { listen: 127.0.0.1:1 }\n", "an egress listener needs \"policy\""},
  {TWO_LINES "  - { listen: 127.0.0.1:1, policy: q }\n", "c.yaml:3: error: there is no policy \"q\""},
  {"policies: [ { name: agents } ]\negress:\n  - { listen: 127.0.0.1:1, policy: agent }\n",
   "there is no policy \"agent\": did you mean \"agents\"?"},
  {TWO_LINES "  - { listen: localhost:1, policy: p }\n", "write ADDRESS:PORT"},
  {TWO_LINES "  - { listen: 127.0.0.1, policy: p }\n", "write ADDRESS:PORT"},
  {TWO_LINES "  - { listen: 127.0.0.1:0, policy: p }\n", "write ADDRESS:PORT"},
  {TWO_LINES "  - { listen: 127.1:80, policy: p }\n", "write ADDRESS:PORT"},
  {TWO_LINES "  - { listen: \"[::ffff:127.0.0.1]:80\", policy: p }\n", "write the IPv4 address itself"},
  {TWO_LINES "  - { listen: 127.0.0.1:1, policy: p, protocols: http }\n", "\"protocols\" wants a list"},
  {TWO_LINES "  - { listen: 127.0.0.1:1, policy: p, protocols: [] }\n", "\"protocols\" is empty"},
  {TWO_LINES "  - { listen: 127.0.0.1:1, policy: p, open: maybe }\n", "wants yes or no"},
  {TWO_LINES "  - { listen: 127.0.0.1:1, policy: p, open: \"yes\" }\n", "wants yes or no, without quotes"},
  {TWO_LINES "  - { listen: 0.0.0.0:1, policy: p }\n", "c.yaml:3: error: 0.0.0.0:1 is not loopback"},
  {TWO_LINES "  - { listen: 192.0.2.1:1, policy: p, authenticate: none }\n", "is not loopback"},
  {TWO_LINES "  - { listen: 192.0.2.1:1, policy: p, open: yes }\n", "is not loopback"},
  {TWO_LINES "  - { listen: 192.0.2.1:1, policy: p, authenticate: none, open: no }\n", "is not loopback"},
  {TWO_LINES "  - { listen: 127.0.0.1:1, policy: p }\n  - { listen: 127.0.0.1:1, policy: p }\n",
   "c.yaml:4: error: listen 127.0.0.1:1 collides with 127.0.0.1:1 in line 3"},
  {TWO_LINES "  - { listen: 127.0.0.1:1, policy: p }\n"
             "  - { listen: 0.0.0.0:1, policy: p, authenticate: none, open: yes }\n",
   "collides"},
  /* limits */
  {"limits: { tunnel_idle: 10 }\n", "wants a whole number with its unit: 250ms, 10s, 5m or 1h"},
  {"limits: { tunnel_idle: 10 s }\n", "with its unit"},
  {"limits: { tunnel_idle: 1.5h }\n", "with its unit"},
  {"limits: { tunnel_idle: 1d }\n", "with its unit"},
  {"limits: { tunnel_idle: 99999999h }\n", "with its unit"},
  {"limits: { tunnel_idle: 1ms }\n", "must be 100ms to 604800000ms"},
  {"limits: { audit_fsync: 2m }\n", "must be 0m to 1m"},
  {"limits: { buffered_bytes: 262144 }\n", "256KiB"},
  {"limits: { buffered_bytes: 1GiB }\n", "must be 4KiB to 65536KiB"},
  {"limits: { buffered_bytes: 64MiB, buffered_total_bytes: 1MiB }\n", "c.yaml:1: error: limits: buffered_bytes"},
  {"limits: { dead_peer: 10s }\n", "keepalive_idle must be shorter than dead_peer"},
  {"limits: { idle: 10s }\n", "unknown key \"idle\" in limits"},
};

Test(config_problems, each_is_an_error_with_its_line)
{
  struct config_folder folder;
  config_folder_make(&folder);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    config_folder_text(&folder, "c.yaml", rows[i].yaml);
    int result = config_folder_load(&folder, "c.yaml");
    cr_expect_eq(result, -EINVAL, "%s", rows[i].yaml);
    cr_expect_gt(folder.report.errors, 0, "%s", rows[i].yaml);
    cr_expect_not_null(strstr(folder.printed, rows[i].said), "%swanted: %s\ngot: %s", rows[i].yaml, rows[i].said,
                       folder.printed);
  }
  config_folder_remove(&folder);
}

static const struct problem_row warnings[] = {
  {POLICY "      - a.test\n      - a.test:443\n" LISTENER,
   "c.yaml:5: warning: \"a.test:443\" never applies: \"a.test\" (c.yaml:4) comes first"},
  {POLICY "      - \"*.a.test\"\n      - \"*.a.test\"\n" LISTENER, "c.yaml:5: warning: \"*.a.test\" never applies"},
  {POLICY "      - 10.0.0.0/8\n      - 10.0.0.0/8:80\n" LISTENER, "c.yaml:5: warning: \"10.0.0.0/8:80\" never applies"},
  {POLICY "      - a.test\n    deny:\n      - a.test\n" LISTENER,
   "c.yaml:4: warning: \"a.test\" never applies: \"a.test\" (c.yaml:6) denies it"},
  {POLICY "      - x.a.test\n    deny: [ \"*.a.test:80\", \"*.test:443\" ]\n" LISTENER,
   "c.yaml:4: warning: \"x.a.test\" never applies"},
  {POLICY "      - \"*.x.a.test\"\n    deny: [ \"*.a.test\" ]\n" LISTENER, "\"*.x.a.test\" never applies"},
  {POLICY "      - a.test:22\n    deny: [ \"*:22\" ]\n" LISTENER, "\"a.test:22\" never applies"},
  {POLICY "      - 10.1.2.0/24\n    deny: [ 10.0.0.0/8 ]\n" LISTENER, "\"10.1.2.0/24\" never applies"},
  {POLICY "      - \"[64:ff9b::a01:200]:80\"\n    deny: [ 10.0.0.0/8 ]\n" LISTENER, "never applies"},
  {POLICY "      - \"*.github.io\"\n" LISTENER, "c.yaml:4: warning: \"*.github.io\" allows everybody's names"},
  {POLICY "      - \"*.co.uk:443\"\n" LISTENER, "\"co.uk\" is a public suffix"},
  {POLICY "      - \"*.com\"\n" LISTENER, "\"com\" is a public suffix"},
  {POLICY "      - 10.0.0.0/7\n" LISTENER, "\"10.0.0.0/7\" reaches public addresses only"},
  {POLICY "      - a.test\n", "c.yaml: warning: nothing listens"},
};

static const char *const silent[] = {
  POLICY "      - a.test\n      - a.test:8443\n      - \"*.a.test\"\n      - b.a.test\n" LISTENER,
  POLICY "      - a.test\n    deny: [ \"a.test:80\", \"*.a.test\" ]\n" LISTENER,
  POLICY "      - \"*.a.test\"\n    deny: [ x.a.test, a.test, \"*.b.a.test\" ]\n" LISTENER,
  POLICY "      - 10.0.0.0/8\n    deny: [ 10.1.0.0/16 ]\n" LISTENER,
  POLICY "      - \"*.internal\"\n      - \"*.example.com\"\n      - github.io\n" LISTENER,
  POLICY "      - a.test\n    deny: [ \"*.co.uk\" ]\n" LISTENER,
  TWO_LINES "  - { listen: 127.0.0.1:1, policy: p }\n  - { listen: \"[::1]:1\", policy: p }\n",
};

Test(config_problems, warnings_do_not_stop_the_load)
{
  struct config_folder folder;
  config_folder_make(&folder);
  for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++) {
    config_folder_text(&folder, "c.yaml", warnings[i].yaml);
    cr_expect_eq(config_folder_load(&folder, "c.yaml"), 0, "%s", folder.printed);
    cr_expect_eq(folder.report.errors, 0);
    cr_expect_eq(folder.report.count, 1, "%s", folder.printed);
    cr_expect_not_null(strstr(folder.printed, warnings[i].said), "%swanted: %s\ngot: %s", warnings[i].yaml,
                       warnings[i].said, folder.printed);
  }
  for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
    config_folder_text(&folder, "c.yaml", silent[i]);
    cr_expect_eq(config_folder_load(&folder, "c.yaml"), 0);
    cr_expect_str_empty(folder.printed, "%s%s", silent[i], folder.printed);
  }
  config_folder_remove(&folder);
}

Test(config_problems, all_are_told_at_once_and_in_order)
{
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_text(&folder, "c.yaml",
                     "audti: x\n"
                     "workers: many\n"
                     "policies:\n"
                     "  - name: p\n"
                     "    allow: [ \"127.1\", { list: b.list } ]\n"
                     "egress:\n"
                     "  - { listen: 127.0.0.1:1, policy: q }\n"
                     "limits: { dns_timeout: soon }\n");
  config_folder_text(&folder, "b.list", "good.test\nbad..test\n");
  cr_assert_eq(config_folder_load(&folder, "c.yaml"), -EINVAL);
  static const struct {
    const char *file;
    unsigned line;
  } expected[] = {{"b.list", 2}, {"c.yaml", 1}, {"c.yaml", 2}, {"c.yaml", 5}, {"c.yaml", 7}, {"c.yaml", 8}};
  cr_expect_eq(folder.report.errors, 6, "%s", folder.printed);
  cr_assert_eq(folder.report.count, 6, "%s", folder.printed);
  for (size_t i = 0; i < folder.report.count; i++) {
    cr_expect_str_eq(strrchr(folder.report.problems[i].file, '/') + 1, expected[i].file);
    cr_expect_eq(folder.report.problems[i].line, expected[i].line);
    cr_expect(folder.report.problems[i].is_error);
  }
  config_folder_remove(&folder);
}

Test(config_problems, a_flood_of_errors_is_counted)
{
  enum { LINES = 5000, LINE_SIZE = 32 };
  static char list[LINES * LINE_SIZE];
  size_t used = 0;
  for (unsigned i = 0; i < LINES; i++)
    used += (size_t)snprintf(list + used, LINE_SIZE, "bad..%u\n", i);
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_write(&folder, "b.list", list, used, 0644);
  config_folder_text(&folder, "c.yaml", POLICY "      - list: b.list\n" LISTENER);
  cr_expect_eq(config_folder_load(&folder, "c.yaml"), -EINVAL);
  cr_expect_eq(folder.report.errors, LINES);
  cr_expect_eq(folder.report.count, CONFIG_ERRORS_SHOWN_MAX + 1);
  cr_expect_not_null(strstr(folder.printed, "4900 more problems are not shown"));
  config_folder_remove(&folder);
}

Test(config_problems, one_host_has_a_bounded_number_of_rules)
{
  enum { LINES = RULES_PER_HOST_MAX + 2, LINE_SIZE = 24 };
  static char list[LINES * LINE_SIZE];
  size_t used = 0;
  for (unsigned i = 1; i <= LINES; i++)
    used += (size_t)snprintf(list + used, LINE_SIZE, "a.test:%u\n", i);
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_write(&folder, "b.list", list, used, 0644);
  config_folder_text(&folder, "c.yaml", POLICY "      - list: b.list\n" LISTENER);
  cr_expect_eq(config_folder_load(&folder, "c.yaml"), -EINVAL);
  cr_expect_not_null(strstr(folder.printed, "b.list:1026: error: more than 1024 rules"), "%s", folder.printed);
  config_folder_remove(&folder);
}

Test(config_problems, the_report_is_fit_for_a_terminal)
{
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_text(&folder, "c.yaml",
                     "\"\\e[31m\\x07\": 1\nuser: \"\xc3\xbc\"\npolicies:\n  - name: p\n"
                     "    allow: [ \"\\e]0;x\\a\" ]\n");
  cr_expect_eq(config_folder_load(&folder, "c.yaml"), -EINVAL);
  cr_expect_geq(folder.report.errors, 3);
  for (const char *at = folder.printed; *at; at++)
    cr_expect(*at == '\n' || (*at >= 0x20 && *at < 0x7f), "byte %d", *at);
  config_folder_remove(&folder);
}
