/* The wall: what passes, what does not, and how soon it is known. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "child/worker/http_head.h"

#define LINE "GET http://a.test/ HTTP/1.1\r\n"
#define HOST "Host: a.test\r\n"
#define CONNECT "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n"

struct outcome {
  enum http_head_result result;
  size_t consumed;
  const char *why;
  size_t known_at; /* bytes that had come when it was known, one coming after the other */
};

static struct http_head head;

static void expect_slice(struct slice slice, const char *text)
{
  cr_expect(slice.length == strlen(text) && memcmp(slice.bytes, text, slice.length) == 0, "%.*s instead of %s",
            (int)slice.length, slice.bytes, text);
}

/* Feeds the bytes one by one and all at once: both must say the same. */
static struct outcome feed(const char *bytes, size_t length)
{
  struct http_head_scan slow = {0}, fast = {0};
  struct outcome one = {.result = HTTP_HEAD_MORE}, all = {.result = HTTP_HEAD_MORE};
  while (one.result == HTTP_HEAD_MORE && one.known_at < length)
    one.result = http_head_parse(&slow, bytes, ++one.known_at, &head, &one.consumed, &one.why);
  all.result = http_head_parse(&fast, bytes, length, &head, &all.consumed, &all.why);
  cr_assert_eq(one.result, all.result, "%d byte by byte, %d at once: %.*s", one.result, all.result, (int)length, bytes);
  cr_assert_eq(one.consumed, all.consumed);
  cr_assert_eq(one.why, all.why);
  return one;
}

static struct outcome feed_text(const char *text)
{
  return feed(text, strlen(text));
}

struct row {
  const char *bytes;
  size_t length;
};
#define ROW(text)         \
  {                       \
    text, sizeof text - 1 \
  }

/* Each row ends with the byte that gives it away. */
static void expect_bad(const struct row *rows, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    struct outcome outcome = feed(rows[i].bytes, rows[i].length);
    cr_expect_eq(outcome.result, HTTP_HEAD_BAD, "row %zu gives %d", i, outcome.result);
    cr_expect_eq(outcome.known_at, rows[i].length, "row %zu is known at %zu", i, outcome.known_at);
    cr_expect(outcome.why && outcome.why[0] >= 'A' && outcome.why[strlen(outcome.why) - 1] == '.', "row %zu", i);
  }
}
#define EXPECT_BAD(rows) expect_bad(rows, sizeof(rows) / sizeof(rows)[0])

TestSuite(worker_http_head, .timeout = 30);

Test(worker_http_head, a_connect_head_comes_apart)
{
  const char *text = "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nUser-Agent:\t x y \t\r\nEmpty:\r\n\r\nearly";
  struct outcome outcome = feed_text(text);
  cr_assert_eq(outcome.result, HTTP_HEAD_DONE);
  cr_assert_eq(outcome.consumed, strlen(text) - strlen("early"));
  cr_assert_eq(outcome.known_at, outcome.consumed);
  expect_slice(head.method, "CONNECT");
  expect_slice(head.target, "a.test:443");
  expect_slice(head.host, "a.test:443");
  cr_expect_eq(head.minor, 1);
  cr_expect(head.has_host);
  cr_expect_not(head.has_content_length);
  cr_expect_not(head.chunked);
  cr_assert_eq(head.field_count, 3);
  expect_slice(head.fields[1].name, "User-Agent");
  expect_slice(head.fields[1].value, "x y");
  expect_slice(head.fields[2].value, "");
}

Test(worker_http_head, fields_are_found_by_name_in_any_case)
{
  cr_assert_eq(feed_text(LINE HOST "Cookie: a=1\r\nCOOKIE: b=2\r\n\r\n").result, HTTP_HEAD_DONE);
  expect_slice(http_head_field(&head, "cookie")->value, "a=1");
  cr_expect_null(http_head_field(&head, "cooki"));
  cr_expect_null(http_head_field(&head, "cookies"));
}

Test(worker_http_head, framing_is_understood)
{
  cr_assert_eq(feed_text("POST http://a.test/ HTTP/1.1\r\n" HOST "content-LENGTH: 9223372036854775807 \r\n\r\n").result,
               HTTP_HEAD_DONE);
  cr_expect(head.has_content_length);
  cr_expect_eq(head.content_length, 9223372036854775807u);
  cr_assert_eq(feed_text("POST http://a.test/ HTTP/1.1\r\n" HOST "Transfer-Encoding:  \tChUnKeD \t\r\n\r\n").result,
               HTTP_HEAD_DONE);
  cr_expect(head.chunked);
  cr_expect_not(head.has_content_length, "what an earlier head had must not stay");
  cr_expect_eq(head.content_length, 0);
}

Test(worker_http_head, what_is_legal_passes)
{
  static const char *const rows[] = {
    "\r\n" LINE HOST "\r\n",
    "GET http://a.test/ HTTP/1.0\r\n\r\n",
    "get * HTTP/1.1\r\n" HOST "\r\n",
    "!#$%&'*+-.^_`|~09azAZ / HTTP/1.1\r\n" HOST "!#$%&'*+-.^_`|~09azAZ: z\r\n\r\n",
    "GET /\"<>\\^`{|}~!$&'()*+,;=:@%00 HTTP/1.1\r\n" HOST "\r\n",
    LINE HOST "X: a:b:c \xe9 \xff \x80\tz\r\n\r\n",
    LINE HOST "Content-Length: 0\r\n\r\n",
    LINE "Host: [2001:db8::1]:443\r\n\r\n",
    LINE "Host: A-b_c.TEST.\r\n\r\n",
    LINE "Host: 127.1:80\r\n\r\n",
    LINE "Host:a.test:65535\r\n\r\n",
    CONNECT "\r\n",
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct outcome outcome = feed_text(rows[i]);
    cr_expect_eq(outcome.result, HTTP_HEAD_DONE, "row %zu: %s", i, outcome.why);
    cr_expect_eq(outcome.consumed, strlen(rows[i]), "row %zu", i);
  }
}

Test(worker_http_head, one_empty_line_before_the_request_is_put_up_with)
{
  const char *text = "\r\n" CONNECT "X: y\r\n\r\n";
  cr_assert_eq(feed_text(text).result, HTTP_HEAD_DONE);
  expect_slice(head.method, "CONNECT");
  cr_assert_eq(head.field_count, 2);
  expect_slice(head.fields[1].value, "y");
  static const struct row rows[] = {ROW("\r\n\r"), ROW("\n"), ROW("\rG"), ROW("\r\n\n"), ROW("\r\n ")};
  EXPECT_BAD(rows);
}

Test(worker_http_head, without_host_only_http_1_0_passes)
{
  cr_assert_eq(feed_text("GET / HTTP/1.0\r\n\r\n").result, HTTP_HEAD_DONE);
  cr_expect_not(head.has_host);
  cr_expect_eq(head.host.length, 0);
  cr_expect_eq(head.minor, 0);
  static const struct row rows[] = {ROW(LINE "\r"), ROW(LINE "X-Host: a.test\r\n\r"), ROW(LINE "Hos: a.test\r\n\r")};
  EXPECT_BAD(rows);
}

Test(worker_http_head, request_lines_are_strict)
{
  static const struct row rows[] = {
    ROW(" "),
    ROW("\t"),
    ROW("G\t"),
    ROW("GE("),
    ROW("GET:"),
    ROW("G\0"),
    ROW("G\xcb"),
    ROW("GET\r"),
    ROW("GET\n"),
    ROW("GET  "),
    ROW("GET \t"),
    ROW("GET /\t"),
    ROW("GET /a\r"),
    ROW("GET /a\n"),
    ROW("GET /a\0"),
    ROW("GET /a\x01"),
    ROW("GET /a\x7f"),
    ROW("GET /\xc3"),
    ROW("GET /a#"),
    ROW("GET /  "),
    ROW("GET / b"),
    ROW("GET / h"),
    ROW("GET / HTTp"),
    ROW("GET / HTTP/2"),
    ROW("GET / HTTP/0"),
    ROW("GET / HTTP/-"),
    ROW("GET / HTTP/1,"),
    ROW("GET / HTTP/1.2"),
    ROW("GET / HTTP/1.10"),
    ROW("GET / HTTP/1.1 "),
    ROW("GET / HTTP/1.1\n"),
    ROW("GET / HTTP/1.1\r\r"),
    ROW("GET / HTTP/1.1\r\0"),
    ROW("GET / HTTP/1.\r"),
    ROW("PRI * HTTP/2"),
    ROW("\x16"),
    ROW("\x05"),
    ROW("\x04"),
    ROW("\0"),
    ROW("CONNECT a.test:443\r"),
  };
  EXPECT_BAD(rows);
}

Test(worker_http_head, field_lines_are_strict)
{
  static const struct row rows[] = {
    ROW(LINE " "),
    ROW(LINE "\t"),
    ROW(LINE HOST " "),
    ROW(LINE HOST "X: a\r\n\t"),
    ROW(LINE HOST ":"),
    ROW(LINE HOST "X "),
    ROW(LINE HOST "X\t"),
    ROW(LINE HOST "X\r"),
    ROW(LINE HOST "X\n"),
    ROW(LINE HOST "X("),
    ROW(LINE HOST "\""),
    ROW(LINE HOST "X@"),
    ROW(LINE HOST "X\xe9"),
    ROW(LINE HOST "X\0"),
    ROW(LINE HOST "X\x01"),
    ROW(LINE HOST "\0"),
    ROW(LINE HOST "X: \0"),
    ROW(LINE HOST "X: a\x01"),
    ROW(LINE HOST "X: \x1b"),
    ROW(LINE HOST "X: a\x7f"),
    ROW(LINE HOST "X: a\n"),
    ROW(LINE HOST "X:\n"),
    ROW(LINE HOST "X: a\x0b"),
    ROW(LINE HOST "X: a\x0c"),
    ROW(LINE HOST "X: a\rY"),
    ROW(LINE HOST "X: a\r\r"),
    ROW(LINE HOST "\n"),
    ROW(LINE HOST "\r\r"),
    ROW(LINE HOST "\rX"),
    ROW(LINE HOST "X: a\r\0"),
  };
  EXPECT_BAD(rows);
}

Test(worker_http_head, common_mistakes_are_named)
{
  cr_expect(strstr(feed_text("\x16\x03\x01").why, "TLS"));
  cr_expect(strstr(feed_text("\x05\x01").why, "SOCKS"));
  cr_expect(strstr(feed_text("\x04\x01").why, "SOCKS"));
  cr_expect(strstr(feed_text(LINE HOST "X: a\r\n b").why, "folded"));
  cr_expect(strstr(feed_text(LINE HOST "X: a\n").why, "LF without CR"));
  cr_expect(strstr(feed(LINE HOST "X: \0", sizeof(LINE HOST "X: \0") - 1).why, "NUL"));
}

Test(worker_http_head, host_is_one_host)
{
  static const struct row rows[] = {
    ROW(LINE HOST "HOST: a.test\r"),   ROW(LINE "Host:\r"),          ROW(LINE "Host: \t \r"),
    ROW(LINE "Host: a b\r"),           ROW(LINE "Host: u@a.test\r"), ROW(LINE "Host: a.test, b.test\r"),
    ROW(LINE "Host: a.test:65536\r"),  ROW(LINE "Host: a.test:0\r"), ROW(LINE "Host: a.test:-1\r"),
    ROW(LINE "Host: a.test\xff\r"),    ROW(LINE "Host: ::1\r"),      ROW(LINE "Host: [::1\r"),
    ROW(LINE "Host: [a.test]\r"),      ROW(LINE "Host: a..test\r"),  ROW(LINE "Host: a%2etest\r"),
    ROW(LINE "Host: http://a.test\r"), ROW(LINE "Host: a.test/\r"),  ROW(LINE "Host: [fe80::1%25lo]\r"),
  };
  EXPECT_BAD(rows);
}

Test(worker_http_head, framing_has_one_meaning)
{
  static const struct row rows[] = {
    ROW(LINE HOST "Content-Length: 5\r\nContent-Length: 5\r"),
    ROW(LINE HOST "Content-Length: 5, 5\r"),
    ROW(LINE HOST "Content-Length:\r"),
    ROW(LINE HOST "Content-Length: -5\r"),
    ROW(LINE HOST "Content-Length: +5\r"),
    ROW(LINE HOST "Content-Length: 0x5\r"),
    ROW(LINE HOST "Content-Length: 5e0\r"),
    ROW(LINE HOST "Content-Length: 1_0\r"),
    ROW(LINE HOST "Content-Length: \"5\"\r"),
    ROW(LINE HOST "Content-Length: 5 5\r"),
    ROW(LINE HOST "Content-Length: \xef\xbc\x95\r"),
    ROW(LINE HOST "Content-Length: 9223372036854775808\r"),
    ROW(LINE HOST "Content-Length: 18446744073709551621\r"),
    ROW(LINE HOST "Content-Length: 00000000000000000005\r"),
    ROW(LINE HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r"),
    ROW(LINE HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r"),
    ROW(LINE HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r"),
    ROW(LINE HOST "Transfer-Encoding: chunked, chunked\r"),
    ROW(LINE HOST "Transfer-Encoding: chunked, identity\r"),
    ROW(LINE HOST "Transfer-Encoding: gzip, chunked\r"),
    ROW(LINE HOST "Transfer-Encoding: xchunked\r"),
    ROW(LINE HOST "Transfer-Encoding: chunkedx\r"),
    ROW(LINE HOST "Transfer-Encoding: \"chunked\"\r"),
    ROW(LINE HOST "Transfer-Encoding: chunked;a=b\r"),
    ROW(LINE HOST "Transfer-Encoding: chunked,\r"),
    ROW(LINE HOST "Transfer-Encoding:\r"),
    ROW(LINE HOST "Transfer-Encoding: \xa0"
                  "chunked\r"),
    ROW("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r"),
    ROW(CONNECT "Content-Length: 0\r"),
    ROW(CONNECT "Transfer-Encoding: chunked\r"),
  };
  EXPECT_BAD(rows);
}

Test(worker_http_head, a_head_may_be_as_long_as_the_limit)
{
  static char text[HEAD_BYTES_MAX + 1];
  static const char start[] = LINE HOST "X: ", end[] = "\r\n\r\n";
  for (size_t over = 0; over <= 1; over++) {
    size_t length = HEAD_BYTES_MAX + over;
    memset(text, 'a', length);
    memcpy(text, start, sizeof start - 1);
    memcpy(text + length - (sizeof end - 1), end, sizeof end - 1);
    struct outcome outcome = feed(text, length);
    cr_expect_eq(outcome.result, over ? HTTP_HEAD_TOO_LARGE : HTTP_HEAD_DONE);
    cr_expect_eq(outcome.known_at, HEAD_BYTES_MAX, "one byte more cannot help");
    cr_expect(over == 0 || outcome.why);
  }
}

Test(worker_http_head, the_number_of_fields_is_bounded)
{
  char text[HEAD_FIELDS_MAX * 16 + 64];
  for (size_t over = 0; over <= 1; over++) {
    size_t length = (size_t)snprintf(text, sizeof text, "%s", LINE HOST);
    for (size_t i = 1; i < HEAD_FIELDS_MAX + over; i++)
      length += (size_t)snprintf(text + length, sizeof text - length, "X-%zu: v\r\n", i);
    snprintf(text + length, sizeof text - length, "\r\n");
    struct outcome outcome = feed_text(text);
    cr_expect_eq(outcome.result, over ? HTTP_HEAD_TOO_LARGE : HTTP_HEAD_DONE);
    cr_expect(over == 1 || head.field_count == HEAD_FIELDS_MAX);
    cr_expect(over == 0 || outcome.known_at == length - strlen("-128: v\r\n"), "known at %zu", outcome.known_at);
  }
}

Test(worker_http_head, a_split_inside_every_pair_of_bytes_changes_nothing)
{
  static const char text[] = "POST http://a.test/ HTTP/1.1\r\n" HOST "Content-Length: 12\r\nX: y\r\n\r\nGET";
  for (size_t cut = 0; cut < sizeof text; cut++) {
    struct http_head_scan scan = {0};
    size_t consumed = 0;
    const char *why = NULL;
    enum http_head_result result = http_head_parse(&scan, text, cut, &head, &consumed, &why);
    if (result == HTTP_HEAD_MORE)
      result = http_head_parse(&scan, text, sizeof text - 1, &head, &consumed, &why);
    cr_assert_eq(result, HTTP_HEAD_DONE, "cut at %zu", cut);
    cr_assert_eq(consumed, sizeof text - 1 - strlen("GET"));
    cr_assert_eq(head.content_length, 12);
    expect_slice(head.fields[2].value, "y");
  }
}
