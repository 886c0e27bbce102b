#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/egress/decide.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "tests/unit/config_folder.h"

static const char full[] = "user: gate_1\n"
                           "confinement: best-effort\n"
                           "audit: logs/audit.jsonl\n"
                           "log: json\n"
                           "log_level: debug\n"
                           "workers: 3\n"
                           "resolver:\n"
                           "  nameservers: [ \"127.0.0.1:5353\", \"[::1]:53\", 192.0.2.1 ]\n"
                           "  hosts_file: hosts\n"
                           "policies:\n"
                           "  - name: agents\n"
                           "    mode: enforce\n"
                           "    allow:\n"
                           "      - github.example\n"
                           "      - \"*.example.net:443\"\n"
                           "      - { host: db.internal, ports: [5432, 6000-6010], resolves_to: [10.20.0.0/16] }\n"
                           "      - list: base.list\n"
                           "    deny: [ gist.github.example, \"*:22\" ]\n"
                           "    message: >\n"
                           "      Ask in #egress;\n"
                           "      do not retry.\n"
                           "  - { name: second }\n"
                           "egress:\n"
                           "  - listen: 127.0.0.1:3128\n"
                           "    protocols: [http]\n"
                           "    authenticate: none\n"
                           "    policy: agents\n"
                           "  - { listen: \"[::]:8080\", authenticate: none, open: yes, policy: second }\n"
                           "limits:\n"
                           "  head_timeout: 250ms\n"
                           "  dns_timeout: 2s\n"
                           "  dial_timeout: 1m\n"
                           "  tunnel_idle: 2h\n"
                           "  half_open_idle: 3s\n"
                           "  keepalive_idle: 4s\n"
                           "  dead_peer: 5s\n"
                           "  connections_per_listener: 6\n"
                           "  buffered_bytes: 8192B\n"
                           "  buffered_total_bytes: 1GiB\n"
                           "  drain_timeout: 0s\n"
                           "  audit_fsync: 0ms\n"
                           "  dials_in_flight: 7\n";

static const char base_list[] = "# comment\n"
                                "\n"
                                "   list.example.org   # why\n"
                                "db2.internal:5432 -> 10.20.0.0/16\r\n"
                                "\t[2001:db8::]/32:443\n"
                                "last.example.org:8443";

Test(config_load, every_key_arrives)
{
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_text(&folder, "c.yaml", full);
  config_folder_text(&folder, "base.list", base_list);
  config_folder_text(&folder, "hosts", "127.0.0.1 localhost\n");
  cr_assert_eq(config_folder_load(&folder, "c.yaml"), 0, "%s", folder.printed);
  cr_expect_str_empty(folder.printed);
  const struct config *config = folder.config;
  char path[128];
  cr_expect_str_eq(config->user, "gate_1");
  cr_expect_eq(config->confinement, CONFINEMENT_BEST_EFFORT);
  snprintf(path, sizeof path, "%s/logs/audit.jsonl", folder.path);
  cr_expect_str_eq(config->audit, path);
  cr_expect(config->log_json);
  cr_expect_eq(config->log_level, LOG_LEVEL_DEBUG);
  cr_expect_eq(config->workers, 3);
  cr_expect_not(config->nameservers_system);
  cr_expect_eq(config->nameserver_count, 3);
  cr_expect_eq(config->nameservers[0].port, 5353);
  cr_expect_eq(config->nameservers[1].address.family, 6);
  cr_expect_eq(config->nameservers[2].port, 53);
  snprintf(path, sizeof path, "%s/hosts", folder.path);
  cr_expect_str_eq(config->hosts_file, path);

  cr_assert_eq(config->policy_count, 2);
  const struct policy *agents = config_policy(config, "agents");
  cr_assert_eq(agents, &config->policies[0]);
  cr_expect_null(config_policy(config, "none"));
  cr_expect_eq(agents->allow_count, 7);
  cr_expect_eq(agents->deny_count, 2);
  cr_expect_str_eq(agents->message, "Ask in #egress; do not retry.");
  cr_expect_str_empty(config->policies[1].message);
  cr_expect_eq(agents->allow[0].line, 14);
  cr_expect_eq(agents->allow[2].line, 16);
  cr_expect_str_eq(agents->allow[2].text, "db.internal:5432,6000-6010 -> 10.20.0.0/16");
  cr_expect_eq(agents->allow[3].line, 3);
  snprintf(path, sizeof path, "%s/base.list", folder.path);
  cr_expect_str_eq(agents->allow[3].file, path);
  cr_expect_str_eq(agents->allow[3].text, "list.example.org");
  cr_expect_eq(agents->allow[6].line, 6);

  cr_assert_eq(config->egress_count, 2);
  cr_expect_eq(config->egress[0].policy, agents);
  cr_expect_eq(config->egress[0].endpoint.port, 3128);
  cr_expect_eq(config->egress[0].line, 24);
  cr_expect_str_eq(config->egress[1].text, "[::]:8080");

  const struct config_limits expected = {.head_timeout_ms = 250,
                                         .dns_timeout_ms = 2000,
                                         .dial_timeout_ms = 60000,
                                         .tunnel_idle_ms = 7200000,
                                         .half_open_idle_ms = 3000,
                                         .keepalive_idle_ms = 4000,
                                         .dead_peer_ms = 5000,
                                         .connections_per_listener = 6,
                                         .buffered_bytes = 8192,
                                         .buffered_total_bytes = 1u << 30,
                                         .drain_timeout_ms = 0,
                                         .audit_fsync_ms = 0,
                                         .dials_in_flight = 7};
  cr_expect_eq(memcmp(&config->limits, &expected, sizeof expected), 0);
  config_folder_remove(&folder);
}

Test(config_load, the_rules_decide)
{
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_text(&folder, "c.yaml", full);
  config_folder_text(&folder, "base.list", base_list);
  config_folder_text(&folder, "hosts", "");
  cr_assert_eq(config_folder_load(&folder, "c.yaml"), 0, "%s", folder.printed);
  static const struct {
    const char *name;
    uint16_t port;
    enum reason reason;
  } asked[] = {
    {"github.example", 443, REASON_NONE},          {"gist.github.example", 443, REASON_DENIED},
    {"github.example", 22, REASON_DENIED},         {"a.example.net", 443, REASON_NONE},
    {"example.net", 443, REASON_NOT_ALLOWED},      {"db.internal", 6005, REASON_NONE},
    {"list.example.org", 80, REASON_NONE},         {"last.example.org", 8443, REASON_NONE},
    {"last.example.org", 443, REASON_NOT_ALLOWED},
  };
  for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
    struct host host;
    cr_assert_eq(host_parse(asked[i].name, strlen(asked[i].name), &host), 0);
    cr_expect_eq(decide_host(&folder.config->policies[0], &host, asked[i].port, NULL).reason, asked[i].reason, "%s:%u",
                 asked[i].name, asked[i].port);
  }
  config_folder_remove(&folder);
}

Test(config_load, what_is_not_written_has_its_default)
{
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_text(&folder, "c.yaml", "policies: [ { name: p } ]\negress: [ { listen: 127.0.0.1:1, policy: p } ]\n");
  cr_assert_eq(config_folder_load(&folder, "c.yaml"), 0, "%s", folder.printed);
  const struct config *config = folder.config;
  cr_expect_str_eq(config->user, "sallyport");
  cr_expect_eq(config->confinement, CONFINEMENT_REQUIRED);
  cr_expect_str_eq(config->audit, "/var/log/sallyport/audit.jsonl");
  cr_expect_str_eq(config->hosts_file, "/etc/hosts");
  cr_expect_not(config->log_json);
  cr_expect_eq(config->log_level, LOG_LEVEL_INFO);
  cr_expect_eq(config->workers, 0);
  cr_expect(config->nameservers_system);
  cr_expect_eq(config->nameserver_count, 0);
  cr_expect_eq(config->limits.head_timeout_ms, 10000);
  cr_expect_eq(config->limits.dns_timeout_ms, 5000);
  cr_expect_eq(config->limits.dial_timeout_ms, 10000);
  cr_expect_eq(config->limits.tunnel_idle_ms, 3600000);
  cr_expect_eq(config->limits.half_open_idle_ms, 300000);
  cr_expect_eq(config->limits.connections_per_listener, 16384);
  cr_expect_eq(config->limits.buffered_bytes, 256 * 1024);
  cr_expect_eq(config->limits.buffered_total_bytes, 64 * 1024 * 1024);
  cr_expect_eq(config->limits.drain_timeout_ms, 30000);
  cr_expect_eq(config->limits.audit_fsync_ms, 100);
  cr_expect_eq(config->limits.dials_in_flight, 4096);
  config_folder_remove(&folder);
}

Test(config_load, the_hosts_file_can_be_none)
{
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_text(&folder, "c.yaml",
                     "resolver: { nameservers: system, hosts_file: none }\n"
                     "policies: [ { name: p } ]\n"
                     "egress: [ { listen: 127.0.0.1:1, policy: p } ]\n");
  cr_assert_eq(config_folder_load(&folder, "c.yaml"), 0, "%s", folder.printed);
  cr_expect_null(folder.config->hosts_file);
  cr_expect(folder.config->nameservers_system);
  config_folder_remove(&folder);
}

Test(config_load, a_hundred_thousand_entries_load_at_once)
{
  enum { ENTRIES = 100000, ENTRY_SIZE = 48, MOST_MS = 5000 };
  struct config_folder folder;
  config_folder_make(&folder);
  char *list = malloc(ENTRIES * ENTRY_SIZE);
  cr_assert_not_null(list);
  size_t used = 0;
  for (unsigned i = 0; i < ENTRIES; i++)
    used += (size_t)snprintf(list + used, ENTRY_SIZE, i % 2 ? "*.zone%u.example.org:443\n" : "host%u.example.org\n", i);
  config_folder_write(&folder, "big.list", list, used, 0644);
  free(list);
  config_folder_text(&folder, "c.yaml",
                     "policies:\n"
                     "  - { name: p, allow: [ { list: big.list } ], deny: [ { list: big.list } ] }\n"
                     "egress: [ { listen: 127.0.0.1:1, policy: p } ]\n");
  uint64_t begin = clock_monotonic_ms();
  cr_expect_eq(config_folder_load(&folder, "c.yaml"), 0);
  /* A tenth of a second without sanitizers; a check that compares each with each would take minutes. */
  cr_expect_lt(clock_monotonic_ms() - begin, MOST_MS);
  cr_expect_eq(folder.report.errors, 0);
  cr_expect_eq(folder.report.count, CONFIG_ERRORS_SHOWN_MAX + 1);
  config_folder_remove(&folder);
}
