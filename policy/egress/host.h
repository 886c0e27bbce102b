/* One canonical form for every spelling of a host. Trust: pure; called by workers on hostile text, and by the parent on
   a worker's word (which must already be canonical). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shared/address.h"
#include "shared/limits.h"

enum host_kind {
  HOST_NAME,        /* LDH name, underscores allowed, lower case, no trailing dot */
  HOST_ADDRESS,     /* IPv4 in four plain decimals, or IPv6 (given in brackets) */
  HOST_ODD_ADDRESS, /* another spelling of an IPv4 address, or a name whose last label is a number: always refused,
                       never looked up */
};

struct host {
  enum host_kind kind;
  struct address address;    /* HOST_ADDRESS only; else family 0 */
  char text[HOST_TEXT_SIZE]; /* canonical; IPv6 without brackets in RFC 5952 form */
};

/* Parses the host part of an authority: `length` bytes, an IPv6 literal in brackets. Upper case is folded, one trailing
   dot is dropped. 0, or -EINVAL when malformed (empty, empty label, label over 63, over 253 characters, a byte outside
   letters, digits, '-', '_' and '.', zone id, percent sign, non-ASCII, brackets around anything but IPv6).
   RFC 3986 section 3.2.2, RFC 1035 section 2.3.1. */
int host_parse(const char *text, size_t length, struct host *ret);

/* The same for text that must already be canonical as `struct host` holds it (IPv6 without brackets): for messages and
   rule files. 0, or -EINVAL when it is malformed or not canonical. */
int host_parse_canonical(const char *text, struct host *ret);

/* "host:port" as people write it, IPv6 in brackets. Returns `ret`. size at least HOST_TEXT_SIZE + 8. */
const char *host_format(const struct host *host, unsigned port, char *ret, size_t size);

/* Splits "host:port", RFC 9112 section 3.2.3, and parses both. Port is plain decimal 1 to 65535 without leading zero;
   when `default_port` is not 0 the ":port" may be absent. No userinfo. 0 or -EINVAL. */
int authority_parse(const char *text, size_t length, unsigned default_port, struct host *ret_host, uint16_t *ret_port);

/* Port in plain decimal, 1 to 65535, no leading zero, no sign. 0 or -EINVAL. */
int port_parse(const char *text, size_t length, uint16_t *ret);
