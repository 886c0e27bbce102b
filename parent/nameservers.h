/* The nameservers that the resolver may talk to: who they are, and sockets connected to them. */
#pragma once

#include "policy/config/config.h"
#include "shared/messages.h"

struct child;

struct nameservers {
  struct endpoint servers[NAMESERVERS_MAX];
  size_t count;
};

/* From the configuration, or the `nameserver` lines of /etc/resolv.conf when it says "system". */
void nameservers_read(const struct config *config, struct nameservers *ret);

/* Answers WANT_SOCKET with a socket connected to the nameserver. NULL, or how the resolver broke the rules. */
const char *nameservers_socket(const struct nameservers *nameservers, struct child *resolver,
                               const struct msg_want_socket *want);

/* The hosts file's content in a sealed memfd, as the resolver takes it. 0 with a descriptor that the caller closes and
   the size, or -errno (-EFBIG over HOSTS_FILE_BYTES_MAX). path NULL: empty. */
int hosts_file_content(const char *path, int *ret_descriptor, uint32_t *ret_bytes);
