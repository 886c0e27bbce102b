/* What `sallyport check` knows of addresses without asking the network. */
#pragma once

#include "policy/config/config.h"
#include "policy/egress/decide.h"

/* Addresses that the hosts file has for a canonical name, at most `most`, in its order. Returns the count; 0 when there
   is no file. hosts(5). */
size_t check_hosts_file(const char *path, const char *name, struct address *ret, size_t most);

/* The configured listeners and the interfaces of this moment. `ret` is cleared by check_own_clear. 0 or -errno. */
int check_own_read(const struct config *config, struct own_listeners *ret);
void check_own_clear(struct own_listeners *own);
