#include "parent/nameservers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "parent/supervise.h"
#include "shared/descriptors.h"
#include "shared/log.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define DNS_PORT 53

static void read_resolv_conf(struct nameservers *ret)
{
  FILE *file = fopen(RESOLV_CONF, "re");
  if (!file) {
    log_warning("%s cannot be read (%s): only names of the hosts file can be resolved", RESOLV_CONF, strerror(errno));
    return;
  }
  char line[512];
  while (ret->count < NAMESERVERS_MAX && fgets(line, sizeof line, file)) {
    char text[ADDRESS_TEXT_SIZE];
    struct endpoint *server = &ret->servers[ret->count];
    if (sscanf(line, " nameserver %63s", text) != 1)
      continue;
    if (address_parse(text, &server->address) < 0) {
      log_warning("%s: nameserver \"%s\" is no plain address and is not used", RESOLV_CONF, text);
      continue;
    }
    server->port = DNS_PORT;
    ret->count++;
  }
  fclose(file);
}

void nameservers_read(const struct config *config, struct nameservers *ret)
{
  *ret = (struct nameservers){0};
  if (config->nameservers_system) {
    read_resolv_conf(ret);
    return;
  }
  for (size_t i = 0; i < config->nameserver_count && i < NAMESERVERS_MAX; i++)
    ret->servers[ret->count++] = config->nameservers[i];
}

static int connect_to(const struct endpoint *server, enum socket_kind kind)
{
  int family = server->address.family == 6 ? AF_INET6 : AF_INET;
  int type = kind == SOCKET_UDP ? SOCK_DGRAM : SOCK_STREAM;
  cleanup_fd int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -errno;
  struct sockaddr_storage storage;
  socklen_t length = endpoint_to_sockaddr(server, &storage);
  if (connect(fd, (struct sockaddr *)&storage, length) < 0 && errno != EINPROGRESS)
    return -errno;
  return steal_fd(&fd);
}

const char *nameservers_socket(const struct nameservers *nameservers, struct child *resolver,
                               const struct msg_want_socket *want)
{
  if (want->server >= nameservers->count || want->kind >= SOCKET_KIND_COUNT)
    return "it wants a socket to a nameserver that does not exist";
  int fd = connect_to(&nameservers->servers[want->server], (enum socket_kind)want->kind);
  if (fd < 0) {
    log_debug("socket to nameserver %u: %s", (unsigned)want->server, strerror(-fd));
    child_send(resolver, &(struct msg_socket_failed){.type = MSG_SOCKET_FAILED, .ticket = want->ticket}, -1);
  } else {
    child_send(resolver, &(struct msg_socket){.type = MSG_SOCKET, .ticket = want->ticket}, fd);
  }
  return NULL;
}

static int copy_file(int from, int to, uint32_t *ret_bytes)
{
  char block[16384];
  size_t total = 0;
  ssize_t got;
  while ((got = read(from, block, sizeof block)) > 0) {
    total += (size_t)got;
    if (total > HOSTS_FILE_BYTES_MAX)
      return -EFBIG;
    if (write(to, block, (size_t)got) != got)
      return -EIO;
  }
  *ret_bytes = (uint32_t)total;
  return got < 0 ? -errno : 0;
}

int hosts_file_content(const char *path, int *ret_descriptor, uint32_t *ret_bytes)
{
  cleanup_fd int content = memfd_create("sallyport-hosts", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (content < 0)
    return -errno;
  uint32_t bytes = 0;
  if (path) {
    cleanup_fd int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
      return -errno;
    int copied = copy_file(file, content, &bytes);
    if (copied < 0)
      return copied;
  }
  if (fcntl(content, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
    return -errno;
  if (lseek(content, 0, SEEK_SET) < 0)
    return -errno;
  *ret_descriptor = steal_fd(&content);
  *ret_bytes = bytes;
  return 0;
}
