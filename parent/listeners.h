/* The bound sockets. Opened before privileges are dropped; workers accept from them, only the parent configures them.
 */
#pragma once

#include "policy/config/config.h"
#include "policy/egress/decide.h"

struct listeners;

/* Binds every egress listener of the configuration, with the options that accepted connections inherit (no delay,
   keep-alive, user timeout). 0, or -errno with *ret_which set to the one that failed and its holder named in the log.
 */
int listeners_open(const struct config *config, struct listeners **ret);
void listeners_close(struct listeners *listeners);

/* Stops accepting in every process that holds the sockets: connections that nobody will take are refused at once. */
void listeners_shutdown(struct listeners *listeners);

size_t listeners_count(const struct listeners *listeners);
int listeners_descriptor(const struct listeners *listeners, size_t index);

/* Own addresses for policy/egress/decide: the listeners, and the interfaces of this moment (read again when older than
   INTERFACES_FRESH_MS, as interfaces come and go with containers). Valid until the next call. */
const struct own_listeners *listeners_own(struct listeners *listeners);
