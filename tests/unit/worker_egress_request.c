/* What a sound head asks of an egress listener. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "child/worker/egress_request.h"

static struct egress_request request;
static const char *why;

static enum reason ask(const char *line)
{
  static struct http_head head;
  static char text[HEAD_BYTES_MAX];
  struct http_head_scan scan = {0};
  size_t consumed;
  int length = snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: other.test\r\n\r\n", line);
  why = NULL;
  cr_assert_eq(http_head_parse(&scan, text, (size_t)length, &head, &consumed, &why), HTTP_HEAD_DONE, "%s: %s", line,
               why);
  memset(&request, 0xa5, sizeof request);
  return egress_request_parse(&head, &request, &why);
}

static void expect_refusal(const char *line, enum reason reason, const char *says)
{
  cr_expect_eq(ask(line), reason, "%s", line);
  cr_assert_not_null(why, "%s", line);
  cr_expect(strstr(why, says), "%s: %s", line, why);
}

TestSuite(worker_egress_request, .timeout = 30);

Test(worker_egress_request, connect_names_a_destination)
{
  static const struct {
    const char *line;
    enum host_kind kind;
    const char *host;
    unsigned port;
  } rows[] = {
    {"CONNECT a.test:443", HOST_NAME, "a.test", 443},
    {"CONNECT A.TEST.:1", HOST_NAME, "a.test", 1},
    {"CONNECT _x.a-b.test:65535", HOST_NAME, "_x.a-b.test", 65535},
    {"CONNECT 192.0.2.1:80", HOST_ADDRESS, "192.0.2.1", 80},
    {"CONNECT [2001:DB8:0:0::1]:443", HOST_ADDRESS, "2001:db8::1", 443},
    {"CONNECT 127.1:443", HOST_ODD_ADDRESS, "127.1", 443},
    {"CONNECT 0x7f000001:443", HOST_ODD_ADDRESS, "0x7f000001", 443},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    cr_expect_eq(ask(rows[i].line), REASON_NONE, "%s: %s", rows[i].line, why);
    cr_expect_eq(request.host.kind, rows[i].kind, "%s", rows[i].line);
    cr_expect_str_eq(request.host.text, rows[i].host);
    cr_expect_eq(request.port, rows[i].port);
  }
}

Test(worker_egress_request, connect_takes_the_authority_form_only)
{
  expect_refusal("CONNECT a.test", REASON_BAD_REQUEST, "port is missing");
  expect_refusal("CONNECT u:p@a.test:443", REASON_BAD_REQUEST, "User names");
  expect_refusal("CONNECT a.test:443@b.test:443", REASON_BAD_REQUEST, "User names");
  expect_refusal("CONNECT http://a.test:443/", REASON_BAD_REQUEST, "without scheme");
  expect_refusal("CONNECT a.test:443/", REASON_BAD_REQUEST, "without scheme");
  expect_refusal("CONNECT a.test:443?x", REASON_BAD_REQUEST, "without scheme");
  expect_refusal("CONNECT /a", REASON_BAD_REQUEST, "without scheme");
  expect_refusal("CONNECT *", REASON_BAD_REQUEST, "without scheme");
  static const char *const rows[] = {
    "CONNECT :443",        "CONNECT a.test:",     "CONNECT a.test:0",         "CONNECT a.test:0443",
    "CONNECT a.test:-1",   "CONNECT a.test:+443", "CONNECT a.test:65536",     "CONNECT a.test:4294967739",
    "CONNECT a.test:443x", "CONNECT a.test:0x1b", "CONNECT a.test:443:443",   "CONNECT a.test:443,b.test:443",
    "CONNECT a..test:443", "CONNECT .a.test:443", "CONNECT a%2etest:443",     "CONNECT *.test:443",
    "CONNECT ::1:443",     "CONNECT [::1:443",    "CONNECT [a.test]:443",     "CONNECT [127.0.0.1]:443",
    "CONNECT a;b.test:1",  "CONNECT [::1]443",    "CONNECT [fe80::1%lo]:443", "CONNECT -a.test:443",
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    expect_refusal(rows[i], REASON_BAD_REQUEST, "from 1 to 65535");
}

Test(worker_egress_request, host_names_have_a_bounded_length)
{
  char line[512] = "CONNECT ";
  size_t start = strlen(line);
  memset(line + start, 'a', 300);
  for (size_t dot = 50; dot < 300; dot += 50)
    line[start + dot] = '.';
  snprintf(line + start + 253, sizeof line - start - 253, ":443");
  cr_expect_eq(ask(line), REASON_NONE);
  cr_expect_eq(strlen(request.host.text), 253);
  snprintf(line + start + 253, sizeof line - start - 253, "a:443");
  cr_expect_eq(ask(line), REASON_BAD_REQUEST);
}

Test(worker_egress_request, methods_are_case_sensitive)
{
  expect_refusal("connect a.test:443", REASON_BAD_REQUEST, "neither host:port with the method CONNECT");
  expect_refusal("GET a.test:443", REASON_BAD_REQUEST, "neither");
}

Test(worker_egress_request, absolute_addresses_are_not_forwarded_yet)
{
  expect_refusal("GET http://a.test/", REASON_METHOD_NOT_ALLOWED, "CONNECT only");
  expect_refusal("POST HTTP://a.test:8080?x=http://u@b", REASON_METHOD_NOT_ALLOWED, "CONNECT only");
  expect_refusal("OPTIONS http://[2001:db8::1]", REASON_METHOD_NOT_ALLOWED, "CONNECT only");
  expect_refusal("GET http://127.1/", REASON_METHOD_NOT_ALLOWED, "CONNECT only");
  expect_refusal("TRACE http://a.test/", REASON_METHOD_NOT_ALLOWED, "TRACE");
  expect_refusal("TRACE /", REASON_METHOD_NOT_ALLOWED, "TRACE");
}

Test(worker_egress_request, malformed_absolute_addresses_are_malformed)
{
  static const char *const schemes[] = {"GET https://a.test/",     "GET ftp://a.test/",   "GET h://",
                                        "GET http+unix://a.test/", "GET httpx://a.test/", "GET file:///etc/passwd"};
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
    expect_refusal(schemes[i], REASON_BAD_REQUEST, "http:// addresses only");
  expect_refusal("GET http://u@a.test/", REASON_BAD_REQUEST, "User names");
  expect_refusal("GET http://a.test:80@b.test:80/", REASON_BAD_REQUEST, "User names");
  static const char *const authorities[] = {
    "GET http://",         "GET http:///a.test/",  "GET http://?x",       "GET http://:80/",
    "GET http://a.test:/", "GET http://a.test:0/", "GET http://a..test/", "GET http://http://a.test/",
    "GET http://[::1/",    "GET http://a.test\\b", "GET http://a,b/",     "GET http://a.test:65536/",
  };
  for (size_t i = 0; i < sizeof authorities / sizeof authorities[0]; i++)
    expect_refusal(authorities[i], REASON_BAD_REQUEST, "no valid host and port");
  expect_refusal("GET 1http://a.test/", REASON_BAD_REQUEST, "neither");
  expect_refusal("GET ://a.test/", REASON_BAD_REQUEST, "neither");
  expect_refusal("GET http:/a.test/", REASON_BAD_REQUEST, "neither");
  expect_refusal("GET cache_object://a.test/", REASON_BAD_REQUEST, "neither");
}

Test(worker_egress_request, who_takes_the_proxy_for_a_web_server_is_told)
{
  expect_refusal("GET /", REASON_BAD_REQUEST, "export HTTPS_PROXY=http://");
  expect_refusal("GET //a.test/", REASON_BAD_REQUEST, "proxy port");
  expect_refusal("OPTIONS *", REASON_BAD_REQUEST, "proxy port");
}
