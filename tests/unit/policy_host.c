#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/egress/host.h"

#define LABEL63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct spelling {
  const char *text;
  enum host_kind kind;
  const char *canonical;
} accepted[] = {
  {"allowed.test", HOST_NAME, "allowed.test"},
  {"ALLOWED.Test", HOST_NAME, "allowed.test"},
  {"allowed.test.", HOST_NAME, "allowed.test"},
  {"_dmarc.allowed_.test", HOST_NAME, "_dmarc.allowed_.test"},
  {"xn--bcher-kva.example", HOST_NAME, "xn--bcher-kva.example"},
  {"localhost", HOST_NAME, "localhost"},
  {"ip6-localhost", HOST_NAME, "ip6-localhost"},
  {"1.2.3.4.example", HOST_NAME, "1.2.3.4.example"},
  {"0xg", HOST_NAME, "0xg"},
  {"1.2.3.4x", HOST_NAME, "1.2.3.4x"},
  {LABEL63 ".test", HOST_NAME, LABEL63 ".test"},
  {"127.0.0.1", HOST_ADDRESS, "127.0.0.1"},
  {"255.255.255.255", HOST_ADDRESS, "255.255.255.255"},
  {"[::1]", HOST_ADDRESS, "::1"},
  {"[2001:DB8:0:0:0:0:0:1]", HOST_ADDRESS, "2001:db8::1"},
  {"[::ffff:127.0.0.1]", HOST_ADDRESS, "::ffff:127.0.0.1"},
  {"[0:0:0:0:0:ffff:7f00:0001]", HOST_ADDRESS, "::ffff:127.0.0.1"},
  {"[::FFFF:A9FE:A9FE]", HOST_ADDRESS, "::ffff:169.254.169.254"},
  {"[64:ff9b::7f00:1]", HOST_ADDRESS, "64:ff9b::7f00:1"},
  {"127.1", HOST_ODD_ADDRESS, "127.1"},
  {"127.0.1", HOST_ODD_ADDRESS, "127.0.1"},
  {"2130706433", HOST_ODD_ADDRESS, "2130706433"},
  {"0x7f000001", HOST_ODD_ADDRESS, "0x7f000001"},
  {"0X7F.0x0.0x0.0x1", HOST_ODD_ADDRESS, "0x7f.0x0.0x0.0x1"},
  {"0x", HOST_ODD_ADDRESS, "0x"},
  {"017700000001", HOST_ODD_ADDRESS, "017700000001"},
  {"00000177.0.0.1", HOST_ODD_ADDRESS, "00000177.0.0.1"},
  {"127.0x0.0.01", HOST_ODD_ADDRESS, "127.0x0.0.01"},
  {"127.0.0.01", HOST_ODD_ADDRESS, "127.0.0.01"},
  {"0", HOST_ODD_ADDRESS, "0"},
  {"127.0.0.256", HOST_ODD_ADDRESS, "127.0.0.256"},
  {"4294967297", HOST_ODD_ADDRESS, "4294967297"},
  {"1.2.3.4.5", HOST_ODD_ADDRESS, "1.2.3.4.5"},
  {"example.123", HOST_ODD_ADDRESS, "example.123"},
  {"127.0.0.1.", HOST_ODD_ADDRESS, "127.0.0.1."},
  {"127.1.", HOST_ODD_ADDRESS, "127.1."},
};

Test(policy_host, spellings_become_one_canonical_form)
{
  for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
    const struct spelling *row = &accepted[i];
    struct host host, again;
    cr_assert_eq(host_parse(row->text, strlen(row->text), &host), 0, "%s", row->text);
    cr_expect_eq(host.kind, row->kind, "%s", row->text);
    cr_expect_str_eq(host.text, row->canonical);
    cr_expect_eq(host.address.family != 0, row->kind == HOST_ADDRESS, "%s", row->text);
    /* A worker sends the canonical text: it must mean the same to the parent. */
    cr_assert_eq(host_parse_canonical(host.text, &again), 0, "%s", row->text);
    cr_expect_eq(again.kind, row->kind, "%s", row->text);
    cr_expect_str_eq(again.text, row->canonical);
    cr_expect(address_equal(&again.address, &host.address), "%s", row->text);
  }
}

static const char *const malformed[] = {
  "",
  ".",
  "..",
  "allowed.test..",
  ".allowed.test",
  "allowed..test",
  "-a.test",
  "a-.test",
  "a.-",
  "a" LABEL63 ".test",
  "*.test",
  "*",
  "a b.test",
  "a\ttest",
  "a\r\nb",
  "a/b",
  "a\\b",
  "a@b",
  "a:b",
  "a;b.test",
  "a,b.test",
  "127%2e0.0.1",
  "%31%32%37.0.0.1",
  "allowed.test%00.denied.test",
  "\xc3\xbc.test",
  "allowed\xe3\x80\x82test",
  "allowed.test\xc2\xad",
  "xn--\x01.test",
  "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1",
  "::1",
  "::1]",
  "[::1",
  "[]",
  "[",
  "]",
  "[::1]x",
  "[::1].",
  "[::1::]",
  "[:::]",
  "[1:2:3:4:5:6:7:8:9]",
  "[12345::]",
  "[allowed.test]",
  "[127.0.0.1]",
  "[fe80::1%25lo]",
  "[fe80::1%lo]",
  "[ ::1]",
  "[::ffff:127.1]",
  "[::ffff:0127.0.0.1]",
  "[::ffff:127.0.0.256]",
  "[v1.x]",
  "[[::1]]",
  "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]",
};

Test(policy_host, what_is_no_host_is_malformed)
{
  for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
    struct host host;
    cr_expect_eq(host_parse(malformed[i], strlen(malformed[i]), &host), -EINVAL, "\"%s\"", malformed[i]);
  }
}

Test(policy_host, every_byte_outside_names_is_malformed)
{
  for (int byte = 0; byte < 256; byte++) {
    const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    char text[] = "ab?cd";
    text[2] = (char)byte;
    struct host host;
    int expected = byte != 0 && strchr(allowed, byte) ? 0 : -EINVAL;
    cr_expect_eq(host_parse(text, sizeof text - 1, &host), expected, "byte %d", byte);
  }
}

Test(policy_host, length_is_bounded)
{
  char text[5000];
  for (size_t i = 0; i < sizeof text; i++)
    text[i] = i % 50 == 49 ? '.' : 'a';
  struct host host;
  cr_expect_eq(host_parse(text, 253, &host), 0);
  cr_expect_eq(strlen(host.text), 253);
  text[253] = '.';
  cr_expect_eq(host_parse(text, 254, &host), 0, "a trailing dot does not count");
  text[253] = 'a';
  cr_expect_eq(host_parse(text, 254, &host), -EINVAL);
  cr_expect_eq(host_parse(text, sizeof text - 1, &host), -EINVAL);
  memset(text, '1', sizeof text);
  for (size_t i = 49; i < sizeof text; i += 50)
    text[i] = '.';
  text[253] = '.';
  cr_expect_eq(host_parse(text, 254, &host), 0);
  cr_expect_eq(host.kind, HOST_ODD_ADDRESS);
  struct host again;
  cr_expect_eq(host_parse_canonical(host.text, &again), 0);
}

Test(policy_host, canonical_text_is_taken_as_it_is_or_not_at_all)
{
  static const char *const refused[] = {"Allowed.test", "allowed.test.", "[::1]", "::FFFF",
                                        "0:0::1",       "::ffff:7f00:1", "",      "a b",
                                        "a:b",          "::1%lo",        "1:2",   "::1 "};
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    struct host host;
    cr_expect_eq(host_parse_canonical(refused[i], &host), -EINVAL, "\"%s\"", refused[i]);
  }
  char unterminated[HOST_TEXT_SIZE];
  memset(unterminated, 'a', sizeof unterminated);
  struct host host;
  cr_expect_eq(host_parse_canonical(unterminated, &host), -EINVAL);
}

Test(policy_host, a_failure_leaves_the_output_alone)
{
  struct host host = {.kind = HOST_NAME, .text = "before"};
  uint16_t port = 7;
  cr_expect_eq(host_parse("a..b", 4, &host), -EINVAL);
  cr_expect_eq(authority_parse("a.test:0", 8, 0, &host, &port), -EINVAL);
  cr_expect_eq(port_parse("99999", 5, &port), -EINVAL);
  cr_expect_str_eq(host.text, "before");
  cr_expect_eq(port, 7);
}

static const struct authority_row {
  const char *text;
  unsigned default_port;
  const char *host; /* NULL: refused */
  unsigned port;
} authorities[] = {
  {"a.test:443", 0, "a.test", 443},
  {"a.test:443", 80, "a.test", 443},
  {"a.test", 80, "a.test", 80},
  {"[::1]:65535", 0, "::1", 65535},
  {"[::1]", 443, "::1", 443},
  {"127.0.0.1.:80", 0, "127.0.0.1.", 80},
  {"a.test", 0, NULL, 0},
  {"[::1]", 0, NULL, 0},
  {"a.test:", 0, NULL, 0},
  {"a.test:", 80, NULL, 0},
  {":443", 0, NULL, 0},
  {":", 80, NULL, 0},
  {"", 80, NULL, 0},
  {"a.test:0", 0, NULL, 0},
  {"a.test:65536", 0, NULL, 0},
  {"a.test:83617", 0, NULL, 0},
  {"a.test:4294985378", 0, NULL, 0},
  {"a.test:-1", 0, NULL, 0},
  {"a.test:+443", 0, NULL, 0},
  {"a.test: 443", 0, NULL, 0},
  {"a.test:443 ", 0, NULL, 0},
  {"a.test:0443", 0, NULL, 0},
  {"a.test:0x1bb", 0, NULL, 0},
  {"a.test:443junk", 0, NULL, 0},
  {"a.test:443,80", 0, NULL, 0},
  {"a.test:443:443", 0, NULL, 0},
  {"a.test:443,b.test:443", 0, NULL, 0},
  {"u:p@a.test:443", 0, NULL, 0},
  {"u@a.test:443", 0, NULL, 0},
  {"http://a.test:443/", 0, NULL, 0},
  {"a.test:443/x", 0, NULL, 0},
  {"a.test:443?x", 0, NULL, 0},
  {"/a", 80, NULL, 0},
  {"*", 80, NULL, 0},
  {"::1:443", 0, NULL, 0},
  {"::1]:443", 0, NULL, 0},
  {"[::1:443", 0, NULL, 0},
  {"[::1]443", 0, NULL, 0},
  {"[::1]x:443", 0, NULL, 0},
};

Test(policy_host, authorities)
{
  for (size_t i = 0; i < sizeof authorities / sizeof authorities[0]; i++) {
    const struct authority_row *row = &authorities[i];
    struct host host = {0};
    uint16_t port = 0;
    int result = authority_parse(row->text, strlen(row->text), row->default_port, &host, &port);
    cr_expect_eq(result, row->host ? 0 : -EINVAL, "\"%s\"", row->text);
    cr_expect_eq(port, row->port, "\"%s\"", row->text);
    if (row->host)
      cr_expect_str_eq(host.text, row->host);
  }
}

Test(policy_host, formatted_text_parses_to_the_same)
{
  static const char *const texts[] = {"a.test:443", "127.0.0.1:1", "[2001:db8::1]:65535"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct host host;
    uint16_t port;
    char text[HOST_TEXT_SIZE + 8];
    cr_assert_eq(authority_parse(texts[i], strlen(texts[i]), 0, &host, &port), 0);
    cr_expect_str_eq(host_format(&host, port, text, sizeof text), texts[i]);
  }
}
