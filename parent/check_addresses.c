#include "parent/check_addresses.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r\n";

/* The next word of the line, terminated in place; NULL at its end. */
static char *next_word(char **rest)
{
  char *word = *rest + strspn(*rest, blanks);
  char *end = word + strcspn(word, blanks);
  *rest = *end != '\0' ? end + 1 : end;
  *end = '\0';
  return *word != '\0' ? word : NULL;
}

static bool line_has(char *line, const char *name, struct address *ret)
{
  line[strcspn(line, "#")] = '\0';
  char *rest = line;
  const char *word = next_word(&rest);
  if (!word || address_parse(word, ret) < 0)
    return false;
  while ((word = next_word(&rest)) != NULL) {
    struct host host;
    if (host_parse(word, strlen(word), &host) == 0 && strcmp(host.text, name) == 0)
      return true;
  }
  return false;
}

static bool contains(const struct address *addresses, size_t count, const struct address *address)
{
  for (size_t i = 0; i < count; i++) {
    if (address_equal(&addresses[i], address))
      return true;
  }
  return false;
}

size_t check_hosts_file(const char *path, const char *name, struct address *ret, size_t most)
{
  FILE *stream = path ? fopen(path, "re") : NULL;
  if (!stream)
    return 0;
  size_t count = 0, capacity = 0;
  char *line = NULL;
  while (count < most && getline(&line, &capacity, stream) >= 0) {
    struct address address;
    if (line_has(line, name, &address) && !contains(ret, count, &address))
      ret[count++] = address;
  }
  free(line);
  fclose(stream);
  return count;
}

static size_t take_interfaces(const struct ifaddrs *all, struct address *ret)
{
  size_t count = 0;
  for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
    struct endpoint endpoint;
    if (!at->ifa_addr || endpoint_from_sockaddr(at->ifa_addr, &endpoint) < 0)
      continue;
    if (ret)
      ret[count] = endpoint.address;
    count++;
  }
  return count;
}

int check_own_read(const struct config *config, struct own_listeners *ret)
{
  struct ifaddrs *all;
  if (getifaddrs(&all) < 0)
    return -errno;
  struct address *interfaces = calloc(take_interfaces(all, NULL) + 1, sizeof *interfaces);
  struct own_listener *listeners = calloc(config->egress_count + 1, sizeof *listeners);
  if (interfaces && listeners) {
    for (size_t i = 0; i < config->egress_count; i++)
      listeners[i].endpoint = config->egress[i].endpoint;
    *ret = (struct own_listeners){.listeners = listeners,
                                  .count = config->egress_count,
                                  .interfaces = interfaces,
                                  .interface_count = take_interfaces(all, interfaces)};
  } else {
    free(interfaces);
    free(listeners);
  }
  freeifaddrs(all);
  return interfaces && listeners ? 0 : -ENOMEM;
}

void check_own_clear(struct own_listeners *own)
{
  free((struct own_listener *)own->listeners);
  free((struct address *)own->interfaces);
  *own = (struct own_listeners){0};
}
