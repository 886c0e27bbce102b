/* Heads are parsed the same however they arrive, and what was accepted means the same when it is written anew. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child/worker/egress_request.h"
#include "child/worker/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                          \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      abort();                                                                      \
    }                                                                               \
  } while (0)

struct parsed {
  enum http_head_result result;
  size_t consumed;
  const char *why;
};

static struct parsed parse(const char *bytes, size_t length, size_t step, struct http_head *head)
{
  struct parsed parsed = {.result = HTTP_HEAD_MORE};
  struct http_head_scan scan = {0};
  for (size_t come = 0; parsed.result == HTTP_HEAD_MORE && come < length;) {
    come = length - come > step ? come + step : length;
    /* A copy of exactly this length: the sanitizer sees a read past what has come. */
    char *copy = malloc(come);
    REQUIRE(copy);
    memcpy(copy, bytes, come);
    parsed.result = http_head_parse(&scan, copy, come, head, &parsed.consumed, &parsed.why);
    free(copy);
  }
  if (parsed.result == HTTP_HEAD_DONE) { /* slices into the caller's bytes, which stay */
    scan = (struct http_head_scan){0};
    REQUIRE(http_head_parse(&scan, bytes, length, head, &parsed.consumed, &parsed.why) == HTTP_HEAD_DONE);
  }
  return parsed;
}

static void append(char *text, size_t *length, const char *bytes, size_t count)
{
  memcpy(text + *length, bytes, count);
  *length += count;
}

static void append_slice(char *text, size_t *length, struct slice slice, const char *end)
{
  append(text, length, slice.bytes, slice.length);
  append(text, length, end, strlen(end));
}

/* The head as we would write it. `text` has room for all that was read, and a blank for each field. */
static size_t write_head(const struct http_head *head, char *text)
{
  size_t length = 0;
  append_slice(text, &length, head->method, " ");
  append_slice(text, &length, head->target, head->minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
  for (size_t i = 0; i < head->field_count; i++) {
    append_slice(text, &length, head->fields[i].name, ":");
    append_slice(text, &length, head->fields[i].value, "\r\n");
  }
  append(text, &length, "\r\n", strlen("\r\n"));
  return length;
}

static void require_same_slice(struct slice a, struct slice b)
{
  REQUIRE(a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0);
}

static void require_same(const struct http_head *a, const struct http_head *b)
{
  require_same_slice(a->method, b->method);
  require_same_slice(a->target, b->target);
  require_same_slice(a->host, b->host);
  REQUIRE(a->minor == b->minor && a->has_host == b->has_host && a->chunked == b->chunked);
  REQUIRE(a->has_content_length == b->has_content_length && a->content_length == b->content_length);
  REQUIRE(a->field_count == b->field_count);
  for (size_t i = 0; i < a->field_count; i++) {
    require_same_slice(a->fields[i].name, b->fields[i].name);
    require_same_slice(a->fields[i].value, b->fields[i].value);
  }
}

static void require_sound(const struct http_head *head, const char *bytes, size_t consumed)
{
  REQUIRE(consumed <= HEAD_BYTES_MAX && head->field_count <= HEAD_FIELDS_MAX);
  REQUIRE(memcmp(bytes + consumed - 4, "\r\n\r\n", 4) == 0);
  REQUIRE(!memchr(bytes, '\0', consumed));
  for (size_t i = 0; i < consumed; i++)
    REQUIRE(bytes[i] == '\r' ? bytes[i + 1] == '\n' : bytes[i] != '\n' || (i > 0 && bytes[i - 1] == '\r'));
  REQUIRE(head->has_host || head->minor == 0);
  REQUIRE(!(head->has_content_length && head->chunked));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static struct http_head whole, pieces, again;
  static char text[HEAD_BYTES_MAX * 2];
  const char *bytes = (const char *)data;
  if (size == 0)
    return 0;
  struct parsed all = parse(bytes, size, size, &whole);
  struct parsed one = parse(bytes, size, size > 1024 ? 31 : 1, &pieces);
  REQUIRE(all.result == one.result && all.consumed == one.consumed && all.why == one.why);
  if (all.result != HTTP_HEAD_DONE) {
    REQUIRE((all.result == HTTP_HEAD_MORE) == !all.why);
    return 0;
  }
  require_sound(&whole, bytes, all.consumed);
  require_same(&whole, &pieces);
  size_t length = write_head(&whole, text);
  REQUIRE(length <= all.consumed);
  struct parsed rewritten = parse(text, length, length, &again);
  REQUIRE(rewritten.result == HTTP_HEAD_DONE && rewritten.consumed == length);
  require_same(&whole, &again);

  struct egress_request request;
  const char *why = NULL;
  if (egress_request_parse(&whole, &request, &why) == REASON_NONE) {
    struct host host;
    REQUIRE(request.port > 0 && host_parse_canonical(request.host.text, &host) == 0 && host.kind == request.host.kind);
  } else {
    REQUIRE(why);
  }
  return 0;
}
