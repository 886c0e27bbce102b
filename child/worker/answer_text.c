#include "child/worker/answer_text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "shared/text.h"

#define TARGET_SHOWN_SIZE (HOST_TEXT_SIZE + 8) /* "[host]:port" */
#define WHY_SHOWN_SIZE 256
#define LINE_SIZE 1024 /* holds the longest line with the longest values */
#define RETRY_AFTER_S 5
#define STATUS_FORBIDDEN 403 /* the policy's own message is about what the policy refuses, not about failures */
#define STATUS_UNAVAILABLE 503

/* What is said, one line each: first what was refused and by what, then what can be done about it. %t is the target, %p
   the policy, %c the address class, %r the rule, %w the worker's own reason; a line with an empty one is left out. */
struct wording {
  const char *what;
  const char *advice;
};

static const struct wording wordings[REASON_COUNT] = {
  [REASON_BAD_REQUEST] = {"Sallyport could not accept this request.", "%w"},
  [REASON_HEAD_TOO_LARGE] = {"Sallyport could not accept this request: its head is too large.", "%w"},
  [REASON_REQUEST_TIMEOUT] = {"Sallyport has waited too long for this request.", "%w"},
  [REASON_METHOD_NOT_ALLOWED] = {"Sallyport does not forward requests with this method.", "%w"},
  [REASON_NOT_ALLOWED] = {"Sallyport refused the connection to %t: no allow rule of %p names it.",
                          "Whoever keeps the policy can permit it by this allow entry: %r"},
  [REASON_DENIED] = {"Sallyport refused the connection to %t: a deny rule of %p forbids it.",
                     "The deny rule is: %r (deny rules outrank all allow rules)"},
  [REASON_ODD_ADDRESS] = {"Sallyport refused the connection to %t: the host is an unusual spelling of an IPv4 address, "
                          "or looks like one, and is refused under every policy.",
                          "Write an address as four plain decimal numbers, or use a name."},
  [REASON_BLOCKED_ADDRESS] = {"Sallyport refused the connection to %t: it leads to an address of %c, which %p does not "
                              "open for it.",
                              "Another name for the same address is refused as well."},
  [REASON_OWN_LISTENER] =
    {"Sallyport refused the connection to %t: it leads back to Sallyport itself, which is never a "
     "destination.",
     "No policy can permit it."},
  [REASON_DNS_ERROR] = {"Sallyport could not connect to %t: the name could not be resolved.",
                        "The policy permits it; check the spelling, or whether the name exists."},
  [REASON_DNS_TIMEOUT] = {"Sallyport could not connect to %t: the nameservers did not answer in time.",
                          "The policy permits it; a later try may succeed."},
  [REASON_CONNECTION_REFUSED] = {"Sallyport could not connect to %t: the host refused the connection.",
                                 "The policy permits it, but nothing accepts connections on that port."},
  [REASON_UNREACHABLE] = {"Sallyport could not connect to %t: there is no route to it.",
                          "The policy permits it; the network does not lead there now."},
  [REASON_CONNECTION_FAILED] = {"Sallyport could not connect to %t: the connection failed.",
                                "The policy permits it; a later try may succeed."},
  [REASON_CONNECTION_TIMEOUT] = {"Sallyport could not connect to %t: there was no answer in time.",
                                 "A later try may succeed."},
  [REASON_LIMIT_REACHED] = {"Sallyport did not connect to %t: a limit on connections is reached.",
                            "Close connections that are not needed, or try again later."},
  [REASON_AUDIT_UNAVAILABLE] =
    {"Sallyport did not connect to %t: the audit log cannot be written, and without a record "
     "nothing is let through.",
     "Try again when whoever runs the gateway has seen to it."},
  [REASON_SHUTTING_DOWN] = {"Sallyport did not connect to %t: it is shutting down.", "Try again later."},
  [REASON_INTERNAL] = {"Sallyport did not connect to %t: it met an error of its own.", "Try again later."},
};

/* A text that is cut rather than overrun. */
struct text {
  char *bytes;
  size_t size;
  size_t length;
};

/* What the placeholders stand for, in printable ASCII. */
struct values {
  char target[TARGET_SHOWN_SIZE];
  char policy[POLICY_NAME_SIZE + sizeof "the policy"];
  char rule[RULE_TEXT_SIZE];
  char address_class[POLICY_NAME_SIZE + sizeof "a forbidden class"];
  char message[POLICY_MESSAGE_SIZE];
  char why[WHY_SHOWN_SIZE];
};

static void add_bytes(struct text *text, const char *bytes, size_t length)
{
  size_t room = text->size - text->length;
  if (length > room)
    length = room;
  memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
}

static void add(struct text *text, const char *piece)
{
  add_bytes(text, piece, strlen(piece));
}

__attribute__((format(printf, 2, 3))) static void add_format(struct text *text, const char *format, ...)
{
  char piece[LINE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(piece, sizeof piece, format, arguments);
  va_end(arguments);
  if (length > 0)
    add_bytes(text, piece, (size_t)length < sizeof piece ? (size_t)length : sizeof piece - 1);
}

/* A string of RFC 8941 section 3.3.3: the value is printable ASCII already. */
static void add_quoted(struct text *text, const char *value)
{
  add(text, "\"");
  for (; *value; value++) {
    if (*value == '"' || *value == '\\')
      add(text, "\\");
    add_bytes(text, value, 1);
  }
  add(text, "\"");
}

static void printable(const char *from, char *ret, size_t size)
{
  text_printable(from ? from : "", from ? strlen(from) : 0, ret, size);
}

/* The name in its sentence, or words that do without it. */
static void printable_or(const char *before, const char *name, const char *without, char *ret, size_t size)
{
  struct text text = {ret, size - 1, 0};
  char shown[POLICY_NAME_SIZE];
  printable(name, shown, sizeof shown);
  add(&text, *shown ? before : without);
  add(&text, shown);
  ret[text.length] = '\0';
}

static void values_of(const struct answer *answer, struct values *ret)
{
  static const struct msg_refusal none;
  const struct msg_refusal *refusal = answer->refusal ? answer->refusal : &none;
  const char *target = answer->target && *answer->target ? answer->target : "the destination";
  printable(target, ret->target, sizeof ret->target);
  printable_or("policy ", refusal->policy, "the policy", ret->policy, sizeof ret->policy);
  printable_or("the class ", refusal->address_class, "a forbidden class", ret->address_class,
               sizeof ret->address_class);
  printable(refusal->rule, ret->rule, sizeof ret->rule);
  printable(refusal->message, ret->message, sizeof ret->message);
  printable(answer->why, ret->why, sizeof ret->why);
}

static const char *value_of(const struct values *values, char placeholder)
{
  switch (placeholder) {
  case 't':
    return values->target;
  case 'p':
    return values->policy;
  case 'r':
    return values->rule;
  case 'c':
    return values->address_class;
  default:
    return values->why;
  }
}

/* Writes the line without its end, terminated; empty when a value is. Returns `ret`. */
static const char *expand(const char *wording, const struct values *values, char ret[LINE_SIZE])
{
  struct text line = {ret, LINE_SIZE - 1, 0};
  for (const char *at = wording; at && *at; at++) {
    if (*at != '%') {
      add_bytes(&line, at, 1);
      continue;
    }
    const char *value = value_of(values, *++at);
    if (*value == '\0') {
      line.length = 0;
      break;
    }
    add(&line, value);
  }
  ret[line.length] = '\0';
  return ret;
}

static void add_line(struct text *text, const char *line)
{
  if (*line)
    add_format(text, "%s\n", line);
}

/* The phrase of the table, with the target where it has "%s". */
static void add_phrase(struct text *text, const char *phrase, const char *target)
{
  const char *place = strstr(phrase, "%s");
  add_bytes(text, phrase, place ? (size_t)(place - phrase) : strlen(phrase));
  if (place)
    add(text, target);
}

static void add_head(struct text *text, enum reason reason, const struct values *values, const char *details,
                     size_t body_length)
{
  const struct reason_row *row = reason_row(reason);
  add_format(text, "HTTP/1.1 %d ", row->status);
  add_phrase(text, row->phrase, values->target);
  add(text, "\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n");
  add_format(text, "Content-Length: %zu\r\nProxy-Status: sallyport", body_length);
  if (*row->proxy_status)
    add_format(text, "; error=%s", row->proxy_status);
  add(text, "; details=");
  add_quoted(text, details);
  add_format(text, "\r\nX-Proxy-Error: %s\r\n", row->id);
  if (row->status == STATUS_UNAVAILABLE)
    add_format(text, "Retry-After: %d\r\n", RETRY_AFTER_S);
  if (reason == REASON_METHOD_NOT_ALLOWED)
    add(text, "Allow: CONNECT\r\n");
  add(text, "Connection: close\r\n\r\n");
}

size_t answer_text(const struct answer *answer, char *ret, size_t size)
{
  enum reason reason = answer->reason < REASON_COUNT ? answer->reason : REASON_INTERNAL;
  struct text text = {ret, size, 0};
  if (reason == REASON_NONE) {
    add(&text, "HTTP/1.1 200 Connection Established\r\n\r\n");
    return text.length;
  }
  struct values values;
  char what[LINE_SIZE], advice[LINE_SIZE], lines[ANSWER_BYTES_MAX];
  struct text body = {lines, sizeof lines, 0};
  values_of(answer, &values);
  add_line(&body, expand(wordings[reason].what, &values, what));
  add_line(&body, expand(wordings[reason].advice, &values, advice));
  if (reason_row(reason)->status == STATUS_FORBIDDEN)
    add_line(&body, values.message);
  add_head(&text, reason, &values, *values.why ? values.why : what, body.length);
  add_bytes(&text, body.bytes, body.length);
  return text.length;
}
