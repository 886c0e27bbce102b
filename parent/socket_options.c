#include "parent/socket_options.h"

#include <netinet/tcp.h>

#define KEEPALIVE_PROBES 4

static void set(int fd, int level, int name, int value)
{
  /* A connection without one of them still works; what they are for is bounded by the idle timeouts too. */
  (void)setsockopt(fd, level, name, &value, sizeof value);
}

void socket_options_tcp(int fd, const struct config_limits *limits)
{
  int idle_s = (int)(limits->keepalive_idle_ms / 1000);
  int probing_s = (int)(limits->dead_peer_ms / 1000) - idle_s;
  int interval_s = probing_s / KEEPALIVE_PROBES;
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s < 1 ? 1 : idle_s);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s < 1 ? 1 : interval_s);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)limits->dead_peer_ms);
}
