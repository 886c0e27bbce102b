/* The bytes of the answers that Sallyport makes itself. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child/worker/answer_text.h"

static char text[ANSWER_BYTES_MAX + 1];

static const char *body(void)
{
  const char *end = strstr(text, "\r\n\r\n");
  cr_assert_not_null(end, "%s", text);
  return end + strlen("\r\n\r\n");
}

/* Writes the answer, and checks what holds for every one of them. */
static size_t write_answer(const struct answer *answer)
{
  memset(text, 0x5a, sizeof text);
  size_t length = answer_text(answer, text, ANSWER_BYTES_MAX);
  cr_assert_lt(length, ANSWER_BYTES_MAX);
  cr_assert_eq(text[length], 0x5a);
  text[length] = '\0';
  cr_assert_eq(strlen(text), length);
  for (const char *at = text; *at; at++) {
    bool line_end = *at == '\n' || *at == '\r';
    cr_assert(line_end || (*at >= 0x20 && *at < 0x7f), "byte %02x in %s", (unsigned char)*at, text);
    cr_assert(at >= body() || (*at == '\r') == (at[1] == '\n'), "%s", text);
  }
  return length;
}

static void expect_field(const char *line)
{
  char whole[512];
  snprintf(whole, sizeof whole, "\r\n%s\r\n", line);
  const char *found = strstr(text, whole);
  cr_expect(found && found < body(), "%s is not in: %s", line, text);
}

static void expect_no_field(const char *name)
{
  char start[128];
  snprintf(start, sizeof start, "\r\n%s:", name);
  cr_expect_null(strstr(text, start), "%s", text);
}

static void expect_start(const char *start)
{
  cr_expect_eq(strncmp(text, start, strlen(start)), 0, "%s", text);
}

static void expect_body(const char *expected)
{
  cr_expect_str_eq(body(), expected);
}

static struct msg_refusal refusal_of(const char *rule, const char *address_class)
{
  struct msg_refusal refusal = {.type = MSG_REFUSAL};
  snprintf(refusal.policy, sizeof refusal.policy, "agents");
  snprintf(refusal.message, sizeof refusal.message, "Ask in #egress.");
  snprintf(refusal.rule, sizeof refusal.rule, "%s", rule);
  snprintf(refusal.address_class, sizeof refusal.address_class, "%s", address_class);
  return refusal;
}

TestSuite(worker_answer_text, .timeout = 30);

Test(worker_answer_text, established_is_a_bare_line)
{
  struct msg_refusal refusal = refusal_of("a.test", "");
  write_answer(&(struct answer){.reason = REASON_NONE, .target = "a.test:443", .why = "Why.", .refusal = &refusal});
  cr_assert_str_eq(text, "HTTP/1.1 200 Connection Established\r\n\r\n");
}

Test(worker_answer_text, every_refusal_is_a_whole_closing_answer)
{
  for (unsigned reason = REASON_NONE + 1; reason < REASON_COUNT; reason++) {
    struct msg_refusal refusal = refusal_of("a.test", "loopback");
    const struct reason_row *row = reason_row(reason);
    char line[256];
    write_answer(&(struct answer){.reason = reason, .target = "a.test:443", .why = "Why.", .refusal = &refusal});
    snprintf(line, sizeof line, "HTTP/1.1 %d ", row->status);
    expect_start(line);
    expect_field("Content-Type: text/plain; charset=utf-8");
    expect_field("X-Content-Type-Options: nosniff");
    expect_field("Connection: close");
    snprintf(line, sizeof line, "X-Proxy-Error: %s", row->id);
    expect_field(line);
    snprintf(line, sizeof line, "Content-Length: %zu", strlen(body()));
    expect_field(line);
    snprintf(line, sizeof line, "Proxy-Status: sallyport%s%s; details=\"", *row->proxy_status ? "; error=" : "",
             row->proxy_status);
    cr_expect(strstr(text, line), "%s is not in: %s", line, text);
    cr_expect_eq(strstr(text, "\r\nRetry-After: ") != NULL, row->status == 503, "%s", text);
    cr_expect_eq(strstr(text, "\r\nAllow: CONNECT\r\n") != NULL, row->status == 405, "%s", text);
    cr_expect(reason == REASON_CLIENT_GONE || strstr(body(), "Sallyport"), "%s", text);
  }
}

Test(worker_answer_text, a_miss_names_the_entry_that_would_permit)
{
  struct msg_refusal refusal = refusal_of("b.test:22", "");
  write_answer(&(struct answer){.reason = REASON_NOT_ALLOWED, .target = "b.test:22", .refusal = &refusal});
  expect_start("HTTP/1.1 403 Blocked by allowlist: b.test:22\r\n");
  expect_field("Proxy-Status: sallyport; error=http_request_denied; details=\"Sallyport refused the connection to "
               "b.test:22: no allow rule of policy agents names it.\"");
  expect_body("Sallyport refused the connection to b.test:22: no allow rule of policy agents names it.\n"
              "Whoever keeps the policy can permit it by this allow entry: b.test:22\n"
              "Ask in #egress.\n");
}

Test(worker_answer_text, where_no_entry_may_permit_none_is_named)
{
  struct msg_refusal refusal = refusal_of("", "");
  refusal.message[0] = '\0';
  write_answer(&(struct answer){.reason = REASON_NOT_ALLOWED, .target = "169.254.169.254:80", .refusal = &refusal});
  expect_body("Sallyport refused the connection to 169.254.169.254:80: no allow rule of policy agents names it.\n");
}

Test(worker_answer_text, a_deny_names_the_deny_rule)
{
  struct msg_refusal refusal = refusal_of("*.b.test", "");
  write_answer(&(struct answer){.reason = REASON_DENIED, .target = "x.b.test:443", .refusal = &refusal});
  expect_start("HTTP/1.1 403 Blocked by allowlist: x.b.test:443\r\n");
  expect_body("Sallyport refused the connection to x.b.test:443: a deny rule of policy agents forbids it.\n"
              "The deny rule is: *.b.test (deny rules outrank all allow rules)\n"
              "Ask in #egress.\n");
}

Test(worker_answer_text, a_blocked_address_is_told_by_its_class)
{
  struct msg_refusal refusal = refusal_of("", "link-local");
  write_answer(&(struct answer){.reason = REASON_BLOCKED_ADDRESS, .target = "b.test:443", .refusal = &refusal});
  expect_start("HTTP/1.1 403 Blocked address: b.test:443\r\n");
  cr_expect(strstr(body(), "the class link-local, which policy agents does not open"), "%s", text);
}

Test(worker_answer_text, the_policy_s_message_is_for_what_the_policy_refused)
{
  struct msg_refusal refusal = refusal_of("", "");
  write_answer(&(struct answer){.reason = REASON_CONNECTION_REFUSED, .target = "b.test:443", .refusal = &refusal});
  expect_start("HTTP/1.1 502 Connection refused: b.test:443\r\n");
  cr_expect_null(strstr(text, "#egress"), "%s", text);
}

Test(worker_answer_text, the_worker_s_own_reason_is_shown)
{
  write_answer(&(struct answer){.reason = REASON_BAD_REQUEST, .why = "A \"quoted\" \\ why."});
  expect_start("HTTP/1.1 400 Bad Request\r\n");
  expect_field("Proxy-Status: sallyport; error=http_request_error; details=\"A \\\"quoted\\\" \\\\ why.\"");
  expect_body("Sallyport could not accept this request.\nA \"quoted\" \\ why.\n");
  expect_no_field("Allow");
}

Test(worker_answer_text, what_is_unknown_is_left_out)
{
  write_answer(&(struct answer){.reason = REASON_NOT_ALLOWED});
  expect_start("HTTP/1.1 403 Blocked by allowlist: the destination\r\n");
  expect_body("Sallyport refused the connection to the destination: no allow rule of the policy names it.\n");
  write_answer(&(struct answer){.reason = REASON_BLOCKED_ADDRESS, .target = ""});
  cr_expect(strstr(body(), "of a forbidden class, which the policy does not open"), "%s", text);
  write_answer(&(struct answer){.reason = REASON_BAD_REQUEST});
  expect_body("Sallyport could not accept this request.\n");
}

Test(worker_answer_text, nothing_from_outside_can_make_a_line_of_its_own)
{
  struct msg_refusal refusal = refusal_of("r\r\nX: 1\r\n\r\n", "c\r\nX: 2");
  snprintf(refusal.policy, sizeof refusal.policy, "p\r\nX: 3\n");
  snprintf(refusal.message, sizeof refusal.message, "m\x1b[2J\xc2\x9b\nX: 4\x7f");
  const char *target = "t\r\nSet-Cookie: 5\r\n\r\nb\x80:443";
  for (unsigned reason = REASON_NONE + 1; reason < REASON_COUNT; reason++) {
    write_answer(&(struct answer){.reason = reason, .target = target, .why = "w\r\nX: 6", .refusal = &refusal});
    expect_no_field("Set-Cookie");
    expect_no_field("X");
  }
  write_answer(&(struct answer){.reason = REASON_NOT_ALLOWED, .target = target, .refusal = &refusal});
  expect_start("HTTP/1.1 403 Blocked by allowlist: t??Set-Cookie: 5????b?:443\r\n");
  cr_expect(strstr(body(), "\nm?[2J???X: 4?\n"), "%s", text);
}

Test(worker_answer_text, percent_signs_are_only_text)
{
  struct msg_refusal refusal = refusal_of("%s%n%t", "%c");
  write_answer(&(struct answer){.reason = REASON_NOT_ALLOWED, .target = "%s%n%r%t", .refusal = &refusal});
  expect_start("HTTP/1.1 403 Blocked by allowlist: %s%n%r%t\r\n");
  cr_expect(strstr(body(), "allow entry: %s%n%t\n"), "%s", text);
}

Test(worker_answer_text, the_longest_values_fit)
{
  static char longest[ANSWER_BYTES_MAX * 2];
  struct msg_refusal refusal;
  memset(longest, '"', sizeof longest - 1);
  memset(&refusal, '"', sizeof refusal);
  refusal.policy[sizeof refusal.policy - 1] = '\0';
  refusal.rule[sizeof refusal.rule - 1] = '\0';
  refusal.address_class[sizeof refusal.address_class - 1] = '\0';
  refusal.message[sizeof refusal.message - 1] = '\0';
  for (unsigned reason = REASON_NONE + 1; reason < REASON_COUNT; reason++) {
    write_answer(&(struct answer){.reason = reason, .target = longest, .why = longest, .refusal = &refusal});
    write_answer(&(struct answer){.reason = reason, .target = longest, .refusal = &refusal});
    cr_expect(reason_row(reason)->status != 403 || strlen(strrchr(text, ' ')) > sizeof refusal.message, "%s", text);
    cr_expect_eq(text[strlen(text) - 1], '\n', "%s", text);
    const char *content_length = strstr(text, "\r\nContent-Length: ") + strlen("\r\nContent-Length: ");
    cr_expect_eq(strtoul(content_length, NULL, 10), strlen(body()), "%s", text);
  }
}

Test(worker_answer_text, an_unknown_reason_is_never_a_success)
{
  write_answer(&(struct answer){.reason = (enum reason)REASON_COUNT, .target = "a.test:443"});
  expect_start("HTTP/1.1 503 Internal error\r\n");
}
