#include "child/resolver/resolver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child/resolver/hosts.h"
#include "child/resolver/lookup.h"
#include "child/resolver/parent_link.h"
#include "child/resolver/question.h"
#include "child/resolver/socket_supply.h"
#include "shared/descriptors.h"
#include "shared/log.h"

struct resolver {
  struct event_base *base;
  struct parent_link *link;
  struct socket_supply *supply;
  struct question_pool *pool;
  struct lookups *lookups;
};

static void settings_came(struct resolver *resolver, const struct msg_resolver_settings *settings)
{
  unsigned servers = settings->servers < NAMESERVERS_MAX ? settings->servers : NAMESERVERS_MAX;
  log_setup("resolver", settings->log_level > LOG_LEVEL_ERROR ? LOG_LEVEL_INFO : (enum log_level)settings->log_level,
            settings->log_json != 0);
  if (servers == 0)
    log_warning("no nameservers: only names in the hosts file are found");
  socket_supply_set_servers(resolver->supply, servers);
  question_pool_set_servers(resolver->pool, servers);
  lookups_configure(resolver->lookups, servers, settings->timeout_ms);
}

static int read_whole(int fd, char *buffer, size_t size)
{
  size_t have = 0;
  while (have < size) {
    ssize_t got = pread(fd, buffer + have, size - have, (off_t)have);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return got < 0 ? -errno : -EIO;
    have += (size_t)got;
  }
  return 0;
}

static int load_hosts(struct resolver *resolver, int fd, size_t bytes)
{
  if (fd < 0)
    return -EBADF;
  if (bytes > HOSTS_FILE_BYTES_MAX)
    return -EFBIG;
  char *text = malloc(bytes + 1);
  if (!text)
    return -ENOMEM;
  struct hosts *hosts;
  int result = read_whole(fd, text, bytes);
  if (result == 0)
    result = hosts_parse(text, bytes, &hosts);
  free(text);
  if (result == 0)
    lookups_set_hosts(resolver->lookups, hosts);
  return result;
}

static void message_came(void *arg, const union message *message, int descriptor)
{
  struct resolver *resolver = arg;
  cleanup_fd int fd = descriptor;
  int result;
  switch (message->type) {
  case MSG_RESOLVER_SETTINGS:
    settings_came(resolver, &message->RESOLVER_SETTINGS);
    return;
  case MSG_HOSTS_FILE:
    result = load_hosts(resolver, fd, message->HOSTS_FILE.bytes);
    if (result < 0)
      log_error("the hosts file cannot be read, the former one stays in force: %s", strerror(-result));
    return;
  case MSG_LOOKUP:
    lookup_start(resolver->lookups, message->LOOKUP.lookup, message->LOOKUP.name);
    return;
  case MSG_SOCKET:
    socket_supply_arrived(resolver->supply, message->SOCKET.ticket, steal_fd(&fd));
    return;
  case MSG_SOCKET_FAILED:
    socket_supply_arrived(resolver->supply, message->SOCKET_FAILED.ticket, -1);
    return;
  default:
    /* message_check knows which types come here. */
    return;
  }
}

static void lookup_done(void *arg, uint64_t id, enum lookup_status status, const struct address_list *addresses)
{
  struct resolver *resolver = arg;
  struct msg_lookup_answer message = {
    .type = MSG_LOOKUP_ANSWER, .status = (uint16_t)status, .count = (uint16_t)addresses->count, .lookup = id};
  memcpy(message.addresses, addresses->addresses, addresses->count * sizeof addresses->addresses[0]);
  parent_link_send(resolver->link, &message);
}

int resolver_new(int channel, struct resolver **ret)
{
  struct resolver *resolver = calloc(1, sizeof *resolver);
  if (!resolver)
    return -ENOMEM;
  resolver->base = event_base_new();
  int result = resolver->base ? 0 : -ENOMEM;
  if (result == 0)
    result = parent_link_new(resolver->base, channel, message_came, resolver, &resolver->link);
  if (result == 0)
    result = socket_supply_new(resolver->link, &resolver->supply);
  if (result == 0)
    result = question_pool_new(resolver->base, resolver->supply, RESOLVER_CHANNELS, &resolver->pool);
  if (result == 0)
    result = lookups_new(resolver->base, resolver->pool, lookup_done, resolver, &resolver->lookups);
  if (result < 0) {
    resolver_free(resolver);
    return result;
  }
  *ret = resolver;
  return 0;
}

int resolver_run(struct resolver *resolver)
{
  if (event_base_dispatch(resolver->base) < 0) {
    log_error("the event loop failed: %s", strerror(errno));
    return -1;
  }
  return parent_link_ended_well(resolver->link) ? 0 : -1;
}

void resolver_free(struct resolver *resolver)
{
  if (!resolver)
    return;
  lookups_free(resolver->lookups);
  question_pool_free(resolver->pool);
  socket_supply_free(resolver->supply);
  parent_link_free(resolver->link);
  if (resolver->base)
    event_base_free(resolver->base);
  free(resolver);
}
