/* The wall: request heads of HTTP/1.x, one meaning or none. Trust: parses hostile bytes; pure, no input/output, no
   allocation. RFC 9112 sections 2 to 6, RFC 9110 section 5; stricter where they allow leniency (DESIGN: one request,
   one meaning). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/limits.h"

struct slice { /* points into the caller's buffer; not terminated */
  const char *bytes;
  size_t length;
};

struct http_field {
  struct slice name;
  struct slice value; /* without surrounding blanks */
};

struct http_head {
  struct slice method;
  struct slice target;
  unsigned minor;    /* HTTP/1.minor: 0 or 1 */
  struct slice host; /* value of the one Host field; length 0 when absent: an empty one is refused */
  bool has_host;
  bool has_content_length;
  uint64_t content_length;
  bool chunked;
  struct http_field fields[HEAD_FIELDS_MAX];
  size_t field_count;
};

enum http_head_result {
  HTTP_HEAD_MORE, /* sound so far, not complete */
  HTTP_HEAD_DONE,
  HTTP_HEAD_BAD,       /* 400 and close; *ret_why is a literal that says what was wrong */
  HTTP_HEAD_TOO_LARGE, /* 431: over HEAD_BYTES_MAX or HEAD_FIELDS_MAX */
};

/* How far an incomplete head has been looked at. Zero before the first call for a head. */
struct http_head_scan {
  uint32_t position; /* bytes before it need no second look */
  uint32_t line_start;
  uint32_t part_start; /* of the version or the value that position is in */
  uint16_t lines;      /* complete ones, the request line included */
  uint8_t part;        /* of the grammar, that position is in */
  uint8_t seen;        /* what later lines must agree with */
};

/* Call again with the grown buffer (same bytes, more of them) until it is not MORE. What is wrong is said as soon as it
   can be known: a bare LF does not wait for the end. On DONE *ret is set and *ret_consumed is the head's length with
   its empty line. Work over all calls is linear in the length. */
enum http_head_result http_head_parse(struct http_head_scan *scan, const char *bytes, size_t length,
                                      struct http_head *ret, size_t *ret_consumed, const char **ret_why);

/* First field of this name (case-insensitive), or NULL. */
const struct http_field *http_head_field(const struct http_head *head, const char *name);
