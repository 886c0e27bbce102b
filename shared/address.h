/* IP addresses and socket addresses in one comparable form. Trust: pure functions, no input/output. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "shared/limits.h"

/* family is 4 or 6 (0: none). IPv4 uses the first four bytes, the rest is zero. Network byte order. */
struct address {
  uint8_t family;
  uint8_t bytes[16];
};

struct endpoint {
  struct address address;
  uint16_t port; /* host byte order */
};

bool address_equal(const struct address *a, const struct address *b);

/* Whether `address` lies in network/prefix. Families must match; 0 <= prefix <= 32 or 128. */
bool address_in_prefix(const struct address *address, const struct address *network, unsigned prefix);

/* Strict text forms only: four plain decimals, or RFC 4291 section 2.2 without zone. 0 or -EINVAL; *ret set on success.
 */
int address_parse(const char *text, struct address *ret);

/* Writes the RFC 5952 text. `size` at least ADDRESS_TEXT_SIZE. Returns `text`. */
const char *address_format(const struct address *address, char *text, size_t size);

/* "a.b.c.d:port" or "[v6]:port". Returns `text`. */
const char *endpoint_format(const struct endpoint *endpoint, char *text, size_t size);

/* Conversions. from: 0 or -EAFNOSUPPORT. to: returns the length in use. */
int endpoint_from_sockaddr(const struct sockaddr *sa, struct endpoint *ret);
socklen_t endpoint_to_sockaddr(const struct endpoint *endpoint, struct sockaddr_storage *ret);

/* IPv4-mapped IPv6 becomes IPv4 (what accept() on a dual-stack listener shows); others are unchanged. */
struct address address_unmap(const struct address *address);
