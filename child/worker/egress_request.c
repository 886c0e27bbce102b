#include "child/worker/egress_request.h"

#include <string.h>
#include <strings.h>

#define HTTP_PORT 80

static const char separator[] = "://";
static const char has_userinfo[] = "User names and passwords may not stand in the target.";

static bool slice_equals(struct slice slice, const char *text)
{
  return slice.length == strlen(text) && memcmp(slice.bytes, text, slice.length) == 0;
}

static bool slice_has(struct slice slice, char byte)
{
  return memchr(slice.bytes, byte, slice.length);
}

/* Why a target that authority_parse refused is refused: the likeliest mistakes by name. */
static const char *authority_complaint(struct slice target)
{
  if (slice_has(target, '@'))
    return has_userinfo;
  if (slice_has(target, '/') || slice_has(target, '?') || slice_equals(target, "*"))
    return "CONNECT takes host:port, without scheme, path or query, for example CONNECT example.org:443.";
  if (!slice_has(target, ':'))
    return "CONNECT takes host:port: the port is missing, for example CONNECT example.org:443.";
  return "CONNECT takes host:port: a host name in ASCII, an IPv4 address or an IPv6 address in brackets, and a port "
         "from "
         "1 to 65535.";
}

/* RFC 9110 section 9.3.6: authority-form only, and the port is mandatory. */
static enum reason parse_connect(struct slice target, struct egress_request *ret, const char **ret_why)
{
  static const unsigned no_default_port = 0;
  if (authority_parse(target.bytes, target.length, no_default_port, &ret->host, &ret->port) == 0)
    return REASON_NONE;
  *ret_why = authority_complaint(target);
  return REASON_BAD_REQUEST;
}

static bool is_alpha(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_scheme_byte(char c)
{
  return is_alpha(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

/* RFC 3986 section 3.1: what stands before "://". Length 0: the target is no absolute URI. */
static struct slice scheme_of(struct slice target)
{
  size_t length = 0;
  while (length < target.length && is_scheme_byte(target.bytes[length]))
    length++;
  bool separated = target.length - length >= sizeof separator - 1 &&
                   memcmp(target.bytes + length, separator, sizeof separator - 1) == 0;
  if (!separated || length == 0 || !is_alpha(target.bytes[0]))
    length = 0;
  return (struct slice){target.bytes, length};
}

/* What stands between "://" and the path or the query. */
static struct slice authority_of(struct slice target, struct slice scheme)
{
  const char *start = target.bytes + scheme.length + sizeof separator - 1;
  size_t length = target.length - scheme.length - (sizeof separator - 1);
  for (size_t i = 0; i < length; i++) {
    if (start[i] == '/' || start[i] == '?')
      length = i;
  }
  return (struct slice){start, length};
}

/* What is wrong with an absolute target (RFC 9112 section 3.2.2), or NULL. */
static const char *absolute_complaint(struct slice target, struct slice scheme)
{
  struct slice authority = authority_of(target, scheme);
  struct host host;
  uint16_t port;
  if (scheme.length != sizeof "http" - 1 || strncasecmp(scheme.bytes, "http", scheme.length) != 0)
    return "A proxy is asked for http:// addresses only: https goes through CONNECT, other schemes not at all.";
  if (slice_has(authority, '@'))
    return has_userinfo;
  if (authority_parse(authority.bytes, authority.length, HTTP_PORT, &host, &port) < 0)
    return "The address has no valid host and port behind http://.";
  return NULL;
}

static enum reason refuse_absolute(struct slice target, struct slice scheme, const char **ret_why)
{
  const char *complaint = absolute_complaint(target, scheme);
  *ret_why = complaint
               ? complaint
               : "This version forwards CONNECT only: use https:// addresses, for which clients ask by CONNECT.";
  return complaint ? REASON_BAD_REQUEST : REASON_METHOD_NOT_ALLOWED;
}

enum reason egress_request_parse(const struct http_head *head, struct egress_request *ret, const char **ret_why)
{
  struct slice target = head->target;
  if (slice_equals(head->method, "CONNECT"))
    return parse_connect(target, ret, ret_why);
  if (slice_equals(head->method, "TRACE")) {
    *ret_why = "TRACE is never forwarded.";
    return REASON_METHOD_NOT_ALLOWED;
  }
  struct slice scheme = scheme_of(target);
  if (scheme.length > 0)
    return refuse_absolute(target, scheme, ret_why);
  if (target.bytes[0] == '/' || slice_equals(target, "*"))
    *ret_why = "This is a proxy port, not a web server. Name it in the environment of the client, for example: export "
               "HTTPS_PROXY=http://127.0.0.1:3128";
  else
    *ret_why = "The target is neither host:port with the method CONNECT nor an http:// address.";
  return REASON_BAD_REQUEST;
}
