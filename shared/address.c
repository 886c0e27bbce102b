#include "shared/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

bool address_equal(const struct address *a, const struct address *b)
{
  return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

bool address_in_prefix(const struct address *address, const struct address *network, unsigned prefix)
{
  if (address->family != network->family)
    return false;
  size_t whole = prefix / 8;
  unsigned rest = prefix % 8;
  if (memcmp(address->bytes, network->bytes, whole) != 0)
    return false;
  if (rest == 0)
    return true;
  uint8_t mask = (uint8_t)(0xff << (8 - rest));
  return (address->bytes[whole] & mask) == (network->bytes[whole] & mask);
}

int address_parse(const char *text, struct address *ret)
{
  struct address parsed = {0};
  /* inet_pton takes neither short forms nor octal nor zones: exactly the strictness that is wanted. */
  if (inet_pton(AF_INET, text, parsed.bytes) == 1)
    parsed.family = 4;
  else if (inet_pton(AF_INET6, text, parsed.bytes) == 1)
    parsed.family = 6;
  else
    return -EINVAL;
  *ret = parsed;
  return 0;
}

const char *address_format(const struct address *address, char *text, size_t size)
{
  int family = address->family == 6 ? AF_INET6 : AF_INET;
  if (address->family == 0 || !inet_ntop(family, address->bytes, text, (socklen_t)size))
    snprintf(text, size, "-");
  return text;
}

const char *endpoint_format(const struct endpoint *endpoint, char *text, size_t size)
{
  char address[ADDRESS_TEXT_SIZE];
  address_format(&endpoint->address, address, sizeof address);
  snprintf(text, size, endpoint->address.family == 6 ? "[%s]:%u" : "%s:%u", address, (unsigned)endpoint->port);
  return text;
}

int endpoint_from_sockaddr(const struct sockaddr *sa, struct endpoint *ret)
{
  struct endpoint converted = {0};
  if (sa->sa_family == AF_INET) {
    struct sockaddr_in in;
    memcpy(&in, sa, sizeof in);
    converted.address.family = 4;
    memcpy(converted.address.bytes, &in.sin_addr, 4);
    converted.port = ntohs(in.sin_port);
  } else if (sa->sa_family == AF_INET6) {
    struct sockaddr_in6 in6;
    memcpy(&in6, sa, sizeof in6);
    converted.address.family = 6;
    memcpy(converted.address.bytes, &in6.sin6_addr, 16);
    converted.port = ntohs(in6.sin6_port);
  } else {
    return -EAFNOSUPPORT;
  }
  *ret = converted;
  return 0;
}

socklen_t endpoint_to_sockaddr(const struct endpoint *endpoint, struct sockaddr_storage *ret)
{
  memset(ret, 0, sizeof *ret);
  if (endpoint->address.family == 6) {
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(endpoint->port)};
    memcpy(&in6.sin6_addr, endpoint->address.bytes, 16);
    memcpy(ret, &in6, sizeof in6);
    return sizeof in6;
  }
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(endpoint->port)};
  memcpy(&in.sin_addr, endpoint->address.bytes, 4);
  memcpy(ret, &in, sizeof in);
  return sizeof in;
}

struct address address_unmap(const struct address *address)
{
  static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
  if (address->family != 6 || memcmp(address->bytes, mapped, sizeof mapped) != 0)
    return *address;
  struct address v4 = {.family = 4};
  memcpy(v4.bytes, address->bytes + 12, 4);
  return v4;
}
