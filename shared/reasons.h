/* Why something was refused or how it ended: one table for status lines, X-Proxy-Error, Proxy-Status and the audit. */
#pragma once

#include <stdint.h>

/* clang-format off */
/* X(symbol, id, HTTP status, Proxy-Status error token of RFC 9209 section 2.3, reason phrase)
   The id is what X-Proxy-Error and the audit show. "%s" in the phrase is host:port. */
#define REASONS(X) \
  X(NONE,               "none",                 200, "",                          "Connection Established") \
  X(BAD_REQUEST,        "bad-request",          400, "http_request_error",        "Bad Request") \
  X(HEAD_TOO_LARGE,     "head-too-large",       431, "http_request_error",        "Request Header Fields Too Large") \
  X(REQUEST_TIMEOUT,    "request-timeout",      408, "http_request_error",        "Request Timeout") \
  X(METHOD_NOT_ALLOWED, "method-not-allowed",   405, "http_request_error",        "Method Not Allowed") \
  X(NOT_ALLOWED,        "blocked-by-allowlist", 403, "http_request_denied",       "Blocked by allowlist: %s") \
  X(DENIED,             "blocked-by-allowlist", 403, "http_request_denied",       "Blocked by allowlist: %s") \
  X(ODD_ADDRESS,        "blocked-address",      403, "destination_ip_prohibited", "Blocked address: %s") \
  X(BLOCKED_ADDRESS,    "blocked-address",      403, "destination_ip_prohibited", "Blocked address: %s") \
  X(OWN_LISTENER,       "blocked-address",      403, "destination_ip_prohibited", "Blocked address: %s") \
  X(DNS_ERROR,          "dns-error",            502, "dns_error",                 "Name not resolved: %s") \
  X(DNS_TIMEOUT,        "dns-timeout",          504, "dns_timeout",               "Name lookup timed out: %s") \
  X(CONNECTION_REFUSED, "connection-refused",   502, "connection_refused",        "Connection refused: %s") \
  X(UNREACHABLE,        "unreachable",          502, "destination_ip_unroutable", "Unreachable: %s") \
  X(CONNECTION_FAILED,  "connection-failed",    502, "destination_unavailable",   "Connection failed: %s") \
  X(CONNECTION_TIMEOUT, "connection-timeout",   504, "connection_timeout",        "Connection timed out: %s") \
  X(LIMIT_REACHED,      "limit-reached",        503, "connection_limit_reached",  "Limit reached, try again") \
  X(AUDIT_UNAVAILABLE,  "audit-unavailable",    503, "proxy_internal_error",      "Audit log unavailable") \
  X(SHUTTING_DOWN,      "shutting-down",        503, "proxy_internal_error",      "Shutting down") \
  X(INTERNAL,           "internal-error",       503, "proxy_internal_error",      "Internal error") \
  X(CLIENT_GONE,        "client-gone",          499, "",                          "Client Closed Request")

enum reason {
#define X(symbol, id, status, token, phrase) REASON_##symbol,
  REASONS(X)
#undef X
  REASON_COUNT
};
/* clang-format on */

struct reason_row {
  const char *id;
  int status;
  const char *proxy_status;
  const char *phrase;
};

/* Row of a reason; an unknown number gives the row of INTERNAL. The table is constant. */
const struct reason_row *reason_row(unsigned reason);

/* clang-format off */
/* X(symbol, id): how a session that had been granted ended. */
#define ENDINGS(X) \
  X(FINISHED,     "finished")          /* both directions reached their end of stream */ \
  X(CLIENT_RESET, "client-reset") \
  X(UPSTREAM_RESET, "upstream-reset") \
  X(CLIENT_GONE,  "client-gone")       /* before the answer: nothing was written */ \
  X(IDLE,         "idle-timeout") \
  X(HALF_OPEN,    "half-open-timeout") \
  X(DEAD_PEER,    "dead-peer")         /* keep-alive or TCP_USER_TIMEOUT */ \
  X(CAPTURE_CAP,  "capture-cap-exceeded") \
  X(CUT,          "cut")               /* forbidden afterwards, or drained */ \
  X(LOST,         "descriptor-lost")   /* the worker could not receive the descriptor */ \
  X(WORKER_DIED,  "worker-died")       /* set by the parent only */ \
  X(ERROR,        "error")

enum ending {
#define X(symbol, id) ENDING_##symbol,
  ENDINGS(X)
#undef X
  ENDING_COUNT
};
/* clang-format on */

const char *ending_id(unsigned ending);
