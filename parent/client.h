/* Who the client is, read by the parent from the client's own descriptor: never a worker's word. */
#pragma once

#include "policy/config/config.h"
#include "shared/address.h"

struct client {
  const struct config_listener *listener;
  struct endpoint peer;
};

enum client_result {
  CLIENT_READ,
  CLIENT_GONE,    /* was a client of ours and has gone away: normal */
  CLIENT_FOREIGN, /* no client of any listener that this worker serves: the worker lies */
};

/* `descriptor` is an accepted TCP connection of one of the configuration's egress listeners. *ret is set for READ, and
   for GONE its listener; *ret_why, for FOREIGN, is a literal. */
enum client_result client_read(int descriptor, const struct config *config, struct client *ret, const char **ret_why);
