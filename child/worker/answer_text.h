/* The bytes of an answer that Sallyport makes itself on egress: status line, fields, two or three plain sentences.
   Pure; writing them is answer.c's. */
#pragma once

#include "shared/messages.h"
#include "shared/reasons.h"

#define ANSWER_BYTES_MAX 4096

struct answer {
  enum reason reason;
  const char *target;                /* "host:port" as asked, or NULL when it was never known; any bytes */
  const char *why;                   /* the worker's own literal, or NULL */
  const struct msg_refusal *refusal; /* the parent's, or NULL */
};

/* Writes the whole response (status line, Content-Type, X-Content-Type-Options, Content-Length, Proxy-Status,
   X-Proxy-Error, Connection: close, Retry-After for 503, Allow for 405; body) into `ret` of at least ANSWER_BYTES_MAX.
   REASON_NONE gives exactly "HTTP/1.1 200 Connection Established\r\n\r\n". Everything that came from outside is
   reduced to printable ASCII. Returns the length. */
size_t answer_text(const struct answer *answer, char *ret, size_t size);
