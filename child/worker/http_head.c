#include "child/worker/http_head.h"

#include <string.h>
#include <strings.h>

#include "policy/egress/host.h"

#define LENGTH_DIGITS_MAX 19 /* 10^19 - 1 fits 64 bits: no overflow on the way to the bound of 63 bits */

/* What a byte may be part of: a token (RFC 9110 section 5.6.2), a request target (visible ASCII; never a fragment),
   a field value (section 5.5, without the control bytes that it lets pass). */
enum byte_class { BYTE_TOKEN = 1, BYTE_TARGET = 2, BYTE_VALUE = 4 };

#define IS_ALPHA(c) ((((c) | 0x20) >= 'a' && ((c) | 0x20) <= 'z'))
#define IS_DIGIT(c) ((c) >= '0' && (c) <= '9')
#define IS_MARK(c)                                                                                                    \
  ((c) == '!' || ((c) >= '#' && (c) <= '\'') || (c) == '*' || (c) == '+' || (c) == '-' || (c) == '.' || (c) == '^' || \
   (c) == '_' || (c) == '`' || (c) == '|' || (c) == '~')
#define CLASS(c)                                                 \
  ((IS_ALPHA(c) || IS_DIGIT(c) || IS_MARK(c) ? BYTE_TOKEN : 0) | \
   ((c) > 0x20 && (c) < 0x7f && (c) != '#' ? BYTE_TARGET : 0) |  \
   ((c) == '\t' || ((c) >= 0x20 && (c) != 0x7f) ? BYTE_VALUE : 0))
#define CLASS_4(c) CLASS(c), CLASS((c) + 1), CLASS((c) + 2), CLASS((c) + 3)
#define CLASS_16(c) CLASS_4(c), CLASS_4((c) + 4), CLASS_4((c) + 8), CLASS_4((c) + 12)
#define CLASS_64(c) CLASS_16(c), CLASS_16((c) + 16), CLASS_16((c) + 32), CLASS_16((c) + 48)

static const uint8_t byte_classes[256] = {CLASS_64(0), CLASS_64(64), CLASS_64(128), CLASS_64(192)};

enum part {
  PART_FIRST_BYTE,
  PART_LEADING_LF, /* of one empty line before the request line (RFC 9112 section 2.2) */
  PART_METHOD,
  PART_TARGET,
  PART_VERSION,
  PART_VERSION_CR,
  PART_LINE_LF,
  PART_LINE_START,
  PART_NAME,
  PART_VALUE,
  PART_HEAD_LF,
  PART_DONE,
  PART_COUNT
};

/* Most parts are a run of bytes of one class (none: an empty run) up to the byte that ends them. */
struct part_rule {
  uint8_t byte_class;
  bool may_be_empty;
  char end;
  uint8_t next;
  const char *complaint; /* about a byte that does not fit */
};

static const struct part_rule part_rules[PART_COUNT] = {
  [PART_FIRST_BYTE] = {.complaint = "The first byte is no part of an HTTP method."},
  [PART_LEADING_LF] = {0, true, '\n', PART_FIRST_BYTE, "A CR is not followed by LF."},
  [PART_METHOD] = {BYTE_TOKEN, false, ' ', PART_TARGET, "The request line does not begin with a method and one space."},
  [PART_TARGET] = {BYTE_TARGET, false, ' ', PART_VERSION,
                   "The request target has a byte that may not be there, or no HTTP version follows it."},
  [PART_VERSION] = {.complaint = "The request line does not end in HTTP/1.1 or HTTP/1.0 after one space."},
  [PART_VERSION_CR] = {0, true, '\r', PART_LINE_LF, "The request line goes on after the HTTP version."},
  [PART_LINE_LF] = {0, true, '\n', PART_LINE_START, "A CR is not followed by LF."},
  [PART_LINE_START] = {.complaint = "A header line begins with a byte that is no part of a field name."},
  [PART_NAME] = {BYTE_TOKEN, false, ':', PART_VALUE,
                 "A header field name has a byte that may not be there, or no colon follows it at once."},
  [PART_VALUE] = {BYTE_VALUE, true, '\r', PART_LINE_LF, "A header field value has a control byte."},
  [PART_HEAD_LF] = {0, true, '\n', PART_DONE, "A CR is not followed by LF."},
};

/* What later lines must agree with. */
enum seen {
  SEEN_CONNECT = 1,
  SEEN_HTTP_1_0 = 2,
  SEEN_HOST = 4,
  SEEN_LENGTH = 8,
  SEEN_CODING = 16,
};

enum special_field { FIELD_ORDINARY, FIELD_HOST, FIELD_LENGTH, FIELD_CODING };

static bool slice_is(struct slice slice, const char *text, size_t length)
{
  return slice.length == length && strncasecmp(slice.bytes, text, length) == 0;
}

static enum special_field special_field(struct slice name)
{
  static const struct {
    const char *name;
    size_t length;
    enum special_field field;
  } specials[] = {
    {"host", sizeof "host" - 1, FIELD_HOST},
    {"content-length", sizeof "content-length" - 1, FIELD_LENGTH},
    {"transfer-encoding", sizeof "transfer-encoding" - 1, FIELD_CODING},
  };
  for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
    if (slice_is(name, specials[i].name, specials[i].length))
      return specials[i].field;
  }
  return FIELD_ORDINARY;
}

static bool is_blank(char c)
{
  return c == ' ' || c == '\t';
}

static struct slice without_blanks(const char *bytes, size_t length)
{
  while (length > 0 && is_blank(bytes[0])) {
    bytes++;
    length--;
  }
  while (length > 0 && is_blank(bytes[length - 1]))
    length--;
  return (struct slice){bytes, length};
}

static bool parse_length(struct slice text, uint64_t *ret)
{
  if (text.length == 0 || text.length > LENGTH_DIGITS_MAX)
    return false;
  uint64_t value = 0;
  for (size_t i = 0; i < text.length; i++) {
    if (!IS_DIGIT(text.bytes[i]))
      return false;
    value = value * 10 + (uint64_t)(text.bytes[i] - '0');
  }
  *ret = value;
  return value <= INT64_MAX;
}

static const char *check_host(uint8_t seen, struct slice value)
{
  static const unsigned any_port = 80; /* the port may be absent; which one is meant then is not asked here */
  struct host host;
  uint16_t port;
  if (seen & SEEN_HOST)
    return "There is more than one Host field.";
  if (authority_parse(value.bytes, value.length, any_port, &host, &port) < 0)
    return "The Host field is not a host name or address with an optional port.";
  return NULL;
}

static const char *check_length(uint8_t seen, struct slice value)
{
  uint64_t length;
  if (seen & SEEN_CONNECT)
    return "CONNECT has no content: neither Content-Length nor Transfer-Encoding may be there.";
  if (seen & SEEN_LENGTH)
    return "There is more than one Content-Length field.";
  if (seen & SEEN_CODING)
    return "There are both Content-Length and Transfer-Encoding.";
  if (!parse_length(value, &length))
    return "Content-Length is not one plain decimal number within 63 bits.";
  return NULL;
}

/* Any list of codings but "chunked" alone would have to be forwarded without being understood. RFC 9112 section 6.1. */
static const char *check_coding(uint8_t seen, struct slice value)
{
  if (seen & SEEN_CONNECT)
    return "CONNECT has no content: neither Content-Length nor Transfer-Encoding may be there.";
  if (seen & SEEN_HTTP_1_0)
    return "Transfer-Encoding does not exist in HTTP/1.0.";
  if (seen & SEEN_CODING)
    return "There is more than one Transfer-Encoding field.";
  if (seen & SEEN_LENGTH)
    return "There are both Content-Length and Transfer-Encoding.";
  if (!slice_is(value, "chunked", sizeof "chunked" - 1))
    return "Transfer-Encoding is not exactly one \"chunked\".";
  return NULL;
}

/* Checks a field whose value has just ended at scan->position. NULL, or what is wrong. */
static const char *field_ended(struct http_head_scan *scan, const char *bytes)
{
  static const struct {
    const char *(*check)(uint8_t seen, struct slice value);
    uint8_t seen;
  } specials[] = {
    [FIELD_HOST] = {check_host, SEEN_HOST},
    [FIELD_LENGTH] = {check_length, SEEN_LENGTH},
    [FIELD_CODING] = {check_coding, SEEN_CODING},
  };
  struct slice name = {bytes + scan->line_start, scan->part_start - 1 - scan->line_start};
  enum special_field field = special_field(name);
  if (field == FIELD_ORDINARY)
    return NULL;
  struct slice value = without_blanks(bytes + scan->part_start, scan->position - scan->part_start);
  const char *why = specials[field].check(scan->seen, value);
  scan->seen |= specials[field].seen;
  return why;
}

static void method_ended(struct http_head_scan *scan, const char *bytes)
{
  static const char connect[] = "CONNECT";
  size_t length = scan->position - scan->line_start;
  if (length == sizeof connect - 1 && memcmp(bytes + scan->line_start, connect, length) == 0)
    scan->seen |= SEEN_CONNECT;
}

static const char *complaint(enum part part, char byte)
{
  if (byte == '\n')
    return "A line ends in LF without CR.";
  if (byte == '\0')
    return "There is a NUL byte in the head.";
  return part_rules[part].complaint;
}

static const char *first_byte_complaint(char byte)
{
  static const char tls_handshake = 0x16, socks4 = 4, socks5 = 5;
  if (byte == tls_handshake)
    return "This port speaks plain HTTP, not TLS: the address of the proxy begins with http://, not https://.";
  if (byte == socks4 || byte == socks5)
    return "This port speaks HTTP, not SOCKS: the address of the proxy begins with http://.";
  return complaint(PART_FIRST_BYTE, byte);
}

static void begin(struct http_head_scan *scan, enum part part)
{
  scan->part = (uint8_t)part;
  scan->part_start = scan->position;
}

static bool is_token(char byte)
{
  return byte_classes[(unsigned char)byte] & BYTE_TOKEN;
}

/* A part that ends at scan->position, just before the byte that ends it. NULL, or what is wrong with it. */
static const char *part_ended(struct http_head_scan *scan, const char *bytes)
{
  if (scan->part == PART_METHOD)
    method_ended(scan, bytes);
  else if (scan->part == PART_VALUE)
    return field_ended(scan, bytes);
  else if (scan->part == PART_LINE_LF)
    scan->lines++;
  return NULL;
}

/* Goes through a part that is a run. NULL: sound so far. */
static const char *scan_run(struct http_head_scan *scan, const char *bytes, uint32_t limit)
{
  enum part part = scan->part;
  const struct part_rule *rule = &part_rules[part];
  uint32_t position = scan->position;
  while (position < limit && byte_classes[(unsigned char)bytes[position]] & rule->byte_class)
    position++;
  scan->position = position;
  if (position == limit)
    return NULL;
  if (bytes[position] != rule->end || (position == scan->part_start && !rule->may_be_empty))
    return complaint(part, bytes[position]);
  const char *why = part_ended(scan, bytes);
  scan->position++;
  begin(scan, rule->next);
  return why;
}

static const char *scan_version(struct http_head_scan *scan, char byte)
{
  static const char version[] = "HTTP/1.";
  size_t index = scan->position - scan->part_start;
  bool last = index == sizeof version - 1;
  if (last ? byte != '0' && byte != '1' : byte != version[index])
    return complaint(PART_VERSION, byte);
  scan->position++;
  if (last && byte == '0')
    scan->seen |= SEEN_HTTP_1_0;
  if (last)
    begin(scan, PART_VERSION_CR);
  return NULL;
}

static const char *scan_first_byte(struct http_head_scan *scan, char byte)
{
  if (byte == '\r' && scan->position == 0) {
    scan->position++;
    begin(scan, PART_LEADING_LF);
    return NULL;
  }
  if (!is_token(byte))
    return first_byte_complaint(byte);
  scan->line_start = scan->position;
  begin(scan, PART_METHOD);
  return NULL;
}

/* The first byte of a line after the request line; it is looked at again as part of a field name. */
static const char *scan_line_start(struct http_head_scan *scan, char byte)
{
  if (byte == '\r') {
    scan->position++;
    begin(scan, PART_HEAD_LF);
    return scan->seen & (SEEN_HOST | SEEN_HTTP_1_0) ? NULL : "There is no Host field.";
  }
  if (is_blank(byte))
    return "A header line is folded: it begins with a blank.";
  if (!is_token(byte))
    return complaint(PART_LINE_START, byte);
  scan->line_start = scan->position;
  begin(scan, PART_NAME);
  return NULL;
}

static const char *scan_part(struct http_head_scan *scan, const char *bytes, uint32_t limit)
{
  switch (scan->part) {
  case PART_FIRST_BYTE:
    return scan_first_byte(scan, bytes[scan->position]);
  case PART_VERSION:
    return scan_version(scan, bytes[scan->position]);
  case PART_LINE_START:
    return scan_line_start(scan, bytes[scan->position]);
  default:
    return scan_run(scan, bytes, limit);
  }
}

static enum http_head_result scan_head(struct http_head_scan *scan, const char *bytes, uint32_t limit,
                                       const char **ret_why)
{
  while (scan->position < limit && scan->part != PART_DONE) {
    const char *why = scan_part(scan, bytes, limit);
    if (why) {
      *ret_why = why;
      return HTTP_HEAD_BAD;
    }
    if (scan->part == PART_NAME && scan->lines > HEAD_FIELDS_MAX) {
      *ret_why = "There are too many header fields.";
      return HTTP_HEAD_TOO_LARGE;
    }
  }
  return scan->part == PART_DONE ? HTTP_HEAD_DONE : HTTP_HEAD_MORE;
}

/* Takes what stands before `end`, which is there: the scan has seen it. */
static struct slice take(const char **at, const char *limit, char end)
{
  const char *start = *at;
  const char *found = memchr(start, end, (size_t)(limit - start));
  *at = found + 1;
  return (struct slice){start, (size_t)(found - start)};
}

static void note_special(struct http_head *head, const struct http_field *field)
{
  switch (special_field(field->name)) {
  case FIELD_HOST:
    head->has_host = true;
    head->host = field->value;
    break;
  case FIELD_LENGTH:
    head->has_content_length = parse_length(field->value, &head->content_length);
    break;
  case FIELD_CODING:
    head->chunked = true;
    break;
  case FIELD_ORDINARY:
    break;
  }
}

/* Cuts a head that the scan has found sound into its slices. The unused fields are left as they are: clearing four
   kilobytes for each head would cost more than parsing it. */
static void cut(const struct http_head_scan *scan, const char *bytes, struct http_head *ret)
{
  static const char line_end[] = "\r\n";
  const char *limit = bytes + scan->position;
  const char *at = bytes[0] == '\r' ? bytes + sizeof line_end - 1 : bytes;
  ret->method = take(&at, limit, ' ');
  ret->target = take(&at, limit, ' ');
  ret->minor = scan->seen & SEEN_HTTP_1_0 ? 0 : 1;
  ret->host = (struct slice){at, 0};
  ret->has_host = ret->has_content_length = ret->chunked = false;
  ret->content_length = 0;
  ret->field_count = scan->lines - 1u;
  take(&at, limit, '\n');
  for (size_t i = 0; i < ret->field_count; i++) {
    struct http_field *field = &ret->fields[i];
    field->name = take(&at, limit, ':');
    struct slice value = take(&at, limit, '\r');
    field->value = without_blanks(value.bytes, value.length);
    at++;
    note_special(ret, field);
  }
}

enum http_head_result http_head_parse(struct http_head_scan *scan, const char *bytes, size_t length,
                                      struct http_head *ret, size_t *ret_consumed, const char **ret_why)
{
  uint32_t limit = length < HEAD_BYTES_MAX ? (uint32_t)length : HEAD_BYTES_MAX;
  enum http_head_result result = scan_head(scan, bytes, limit, ret_why);
  if (result == HTTP_HEAD_MORE && limit == HEAD_BYTES_MAX) {
    *ret_why = "The request line and header fields are too long.";
    return HTTP_HEAD_TOO_LARGE;
  }
  if (result == HTTP_HEAD_DONE) {
    cut(scan, bytes, ret);
    *ret_consumed = scan->position;
  }
  return result;
}

const struct http_field *http_head_field(const struct http_head *head, const char *name)
{
  size_t length = strlen(name);
  for (size_t i = 0; i < head->field_count; i++) {
    if (slice_is(head->fields[i].name, name, length))
      return &head->fields[i];
  }
  return NULL;
}
