/* Options of every TCP connection, set by the parent because workers may not. */
#pragma once

#include "policy/config/config.h"

/* No delay, keep-alive and TCP_USER_TIMEOUT from the limits: a peer that is silently gone is found within dead_peer_ms.
 */
void socket_options_tcp(int fd, const struct config_limits *limits);
