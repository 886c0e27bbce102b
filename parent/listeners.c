#include "parent/listeners.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>

#include "parent/socket_holder.h"
#include "parent/socket_options.h"
#include "shared/clock.h"
#include "shared/descriptors.h"
#include "shared/log.h"

#define LISTEN_BACKLOG 4096
#define INTERFACES_FRESH_MS 2000

struct listeners {
  size_t count;
  int descriptors[LISTENERS_MAX];
  struct own_listener own_endpoints[LISTENERS_MAX];
  struct address *interfaces;
  uint64_t interfaces_read_ms;
  struct own_listeners own;
};

static int bind_one(const struct config_listener *listener, const struct config_limits *limits)
{
  bool v6 = listener->endpoint.address.family == 6;
  cleanup_fd int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -errno;
  int on = 1;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
    return -errno;
  if (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0)
    return -errno;
  socket_options_tcp(fd, limits);
  struct sockaddr_storage storage;
  socklen_t length = endpoint_to_sockaddr(&listener->endpoint, &storage);
  if (bind(fd, (struct sockaddr *)&storage, length) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
    return -errno;
  return steal_fd(&fd);
}

int listeners_open(const struct config *config, struct listeners **ret)
{
  if (config->egress_count > LISTENERS_MAX)
    return -E2BIG;
  struct listeners *listeners = calloc(1, sizeof *listeners);
  if (!listeners)
    return -ENOMEM;
  for (size_t i = 0; i < config->egress_count; i++) {
    int fd = bind_one(&config->egress[i], &config->limits);
    if (fd < 0) {
      char holder[SOCKET_HOLDER_SIZE] = "";
      if (fd == -EADDRINUSE)
        socket_holder(&config->egress[i].endpoint, holder, sizeof holder);
      log_error("%s:%u: cannot listen on %s: %s%s", config->path, config->egress[i].line, config->egress[i].text,
                strerror(-fd), holder);
      listeners_close(listeners);
      return fd;
    }
    listeners->descriptors[i] = fd;
    listeners->own_endpoints[i].endpoint = config->egress[i].endpoint;
    listeners->count++;
  }
  listeners->own = (struct own_listeners){.listeners = listeners->own_endpoints, .count = listeners->count};
  *ret = listeners;
  return 0;
}

void listeners_close(struct listeners *listeners)
{
  for (size_t i = 0; i < listeners->count; i++)
    close(listeners->descriptors[i]);
  free(listeners->interfaces);
  free(listeners);
}

void listeners_shutdown(struct listeners *listeners)
{
  for (size_t i = 0; i < listeners->count; i++)
    (void)shutdown(listeners->descriptors[i], SHUT_RDWR);
}

size_t listeners_count(const struct listeners *listeners)
{
  return listeners->count;
}

int listeners_descriptor(const struct listeners *listeners, size_t index)
{
  return listeners->descriptors[index];
}

static size_t count_addresses(const struct ifaddrs *all, struct address *ret)
{
  size_t count = 0;
  for (const struct ifaddrs *each = all; each; each = each->ifa_next) {
    struct endpoint endpoint;
    if (!each->ifa_addr || endpoint_from_sockaddr(each->ifa_addr, &endpoint) < 0)
      continue;
    if (ret)
      ret[count] = endpoint.address;
    count++;
  }
  return count;
}

static void read_interfaces(struct listeners *listeners)
{
  struct ifaddrs *all;
  if (getifaddrs(&all) < 0) {
    log_warning("interface addresses cannot be read (%s); the former ones stay in force", strerror(errno));
    return;
  }
  size_t count = count_addresses(all, NULL);
  struct address *addresses = calloc(count + 1, sizeof *addresses);
  if (addresses) {
    free(listeners->interfaces);
    listeners->interfaces = addresses;
    listeners->own.interfaces = addresses;
    listeners->own.interface_count = count_addresses(all, addresses);
  }
  freeifaddrs(all);
}

const struct own_listeners *listeners_own(struct listeners *listeners)
{
  uint64_t now = clock_monotonic_ms();
  if (!listeners->interfaces || now - listeners->interfaces_read_ms >= INTERFACES_FRESH_MS) {
    read_interfaces(listeners);
    listeners->interfaces_read_ms = now;
  }
  return &listeners->own;
}
