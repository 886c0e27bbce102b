#include "parent/client.h"

#include <errno.h>
#include <string.h>

static bool is_zero(const struct address *address)
{
  static const struct address v4 = {.family = 4}, v6 = {.family = 6};
  return address_equal(address, &v4) || address_equal(address, &v6);
}

/* The listener bound to exactly this address, else one bound to every address of the family ([::] is bound for IPv6
   only): as the kernel chooses. */
static const struct config_listener *listener_at(const struct config *config, const struct endpoint *local)
{
  const struct config_listener *wildcard = NULL;
  for (size_t i = 0; i < config->egress_count; i++) {
    const struct config_listener *listener = &config->egress[i];
    const struct address *bound = &listener->endpoint.address;
    if (listener->endpoint.port != local->port || bound->family != local->address.family)
      continue;
    if (address_equal(&local->address, bound))
      return listener;
    if (is_zero(bound))
      wildcard = listener;
  }
  return wildcard;
}

static int integer_option(int descriptor, int name, int *ret)
{
  socklen_t length = sizeof *ret;
  return getsockopt(descriptor, SOL_SOCKET, name, ret, &length);
}

enum client_result client_read(int descriptor, const struct config *config, struct client *ret, const char **ret_why)
{
  int protocol, listening;
  *ret_why = "the descriptor is no TCP connection";
  if (integer_option(descriptor, SO_PROTOCOL, &protocol) < 0 || protocol != IPPROTO_TCP)
    return CLIENT_FOREIGN;
  if (integer_option(descriptor, SO_ACCEPTCONN, &listening) < 0 || listening)
    return CLIENT_FOREIGN;

  struct sockaddr_storage storage;
  socklen_t length = sizeof storage;
  struct endpoint local;
  *ret_why = "the descriptor is no client of a listener";
  if (getsockname(descriptor, (struct sockaddr *)&storage, &length) < 0 ||
      endpoint_from_sockaddr((struct sockaddr *)&storage, &local) < 0)
    return CLIENT_FOREIGN;
  const struct config_listener *listener = listener_at(config, &local);
  if (!listener)
    return CLIENT_FOREIGN;

  struct client client = {.listener = listener};
  length = sizeof storage;
  /* After a reset there is no peer any more. */
  bool gone = getpeername(descriptor, (struct sockaddr *)&storage, &length) < 0 ||
              endpoint_from_sockaddr((struct sockaddr *)&storage, &client.peer) < 0;
  client.peer.address = address_unmap(&client.peer.address);
  *ret = client;
  *ret_why = NULL;
  return gone ? CLIENT_GONE : CLIENT_READ;
}
