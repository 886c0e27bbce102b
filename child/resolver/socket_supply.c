#include "child/resolver/socket_supply.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/descriptors.h"

struct want {
  struct want *next;
  uint64_t ticket;
  unsigned server;
  enum socket_kind kind;
  bool stale;          /* of former settings: never kept */
  socket_taker *taker; /* NULL: to be kept */
  void *arg;
};

struct kept {
  int fd;
  uint64_t since_ms;
};

struct shelf { /* of one nameserver; the oldest first */
  struct kept kept[RESOLVER_SOCKETS_AHEAD];
  size_t count;
  size_t coming; /* wants without taker */
};

struct socket_supply {
  struct parent_link *link;
  unsigned servers;
  struct shelf shelves[NAMESERVERS_MAX];
  struct want *wants;
  uint64_t last_ticket;
};

int socket_supply_new(struct parent_link *link, struct socket_supply **ret)
{
  struct socket_supply *supply = calloc(1, sizeof *supply);
  if (!supply)
    return -ENOMEM;
  supply->link = link;
  *ret = supply;
  return 0;
}

static void shelf_empty(struct shelf *shelf)
{
  for (size_t i = 0; i < shelf->count; i++)
    close(shelf->kept[i].fd);
  *shelf = (struct shelf){0};
}

void socket_supply_free(struct socket_supply *supply)
{
  if (!supply)
    return;
  for (unsigned i = 0; i < NAMESERVERS_MAX; i++)
    shelf_empty(&supply->shelves[i]);
  while (supply->wants) {
    struct want *next = supply->wants->next;
    free(supply->wants);
    supply->wants = next;
  }
  free(supply);
}

void socket_supply_set_servers(struct socket_supply *supply, unsigned servers)
{
  for (unsigned i = 0; i < NAMESERVERS_MAX; i++)
    shelf_empty(&supply->shelves[i]);
  for (struct want *want = supply->wants; want; want = want->next)
    want->stale = true;
  supply->servers = servers < NAMESERVERS_MAX ? servers : NAMESERVERS_MAX;
}

uint64_t socket_supply_want(struct socket_supply *supply, unsigned server, enum socket_kind kind, socket_taker *taker,
                            void *arg)
{
  if (server >= supply->servers)
    return 0;
  struct want *want = calloc(1, sizeof *want);
  if (!want)
    return 0;
  *want = (struct want){
    .next = supply->wants, .ticket = ++supply->last_ticket, .server = server, .kind = kind, .taker = taker, .arg = arg};
  supply->wants = want;
  struct msg_want_socket message = {
    .type = MSG_WANT_SOCKET, .server = (uint16_t)server, .kind = (uint16_t)kind, .ticket = want->ticket};
  parent_link_send(supply->link, &message);
  return want->ticket;
}

static void refill(struct socket_supply *supply, unsigned server)
{
  struct shelf *shelf = &supply->shelves[server];
  while (shelf->count + shelf->coming < RESOLVER_SOCKETS_AHEAD &&
         socket_supply_want(supply, server, SOCKET_UDP, NULL, NULL))
    shelf->coming++;
}

static int shelf_pop(struct shelf *shelf)
{
  int fd = shelf->kept[0].fd;
  shelf->count--;
  for (size_t i = 0; i < shelf->count; i++)
    shelf->kept[i] = shelf->kept[i + 1];
  return fd;
}

int socket_supply_take(struct socket_supply *supply, unsigned server)
{
  if (server >= supply->servers)
    return -1;
  struct shelf *shelf = &supply->shelves[server];
  uint64_t now_ms = clock_monotonic_ms();
  while (shelf->count > 0 && now_ms - shelf->kept[0].since_ms > RESOLVER_SOCKET_AGE_MS)
    close(shelf_pop(shelf));
  int fd = shelf->count > 0 ? shelf_pop(shelf) : -1;
  refill(supply, server);
  return fd;
}

static struct want **find_want(struct socket_supply *supply, uint64_t ticket)
{
  struct want **link = &supply->wants;
  while (*link && (*link)->ticket != ticket)
    link = &(*link)->next;
  return link;
}

void socket_supply_forget(struct socket_supply *supply, uint64_t ticket)
{
  struct want *want = *find_want(supply, ticket);
  if (!want)
    return;
  want->taker = NULL;
  /* No question went out through it: it is as good as one that was asked for ahead. */
  if (!want->stale && want->kind == SOCKET_UDP)
    supply->shelves[want->server].coming++;
}

static void keep(struct socket_supply *supply, const struct want *want, int *fd)
{
  if (want->stale || want->kind != SOCKET_UDP)
    return;
  struct shelf *shelf = &supply->shelves[want->server];
  shelf->coming--;
  if (*fd >= 0 && shelf->count < RESOLVER_SOCKETS_AHEAD)
    shelf->kept[shelf->count++] = (struct kept){.fd = steal_fd(fd), .since_ms = clock_monotonic_ms()};
}

void socket_supply_arrived(struct socket_supply *supply, uint64_t ticket, int fd)
{
  cleanup_fd int arrived = fd;
  struct want **link = find_want(supply, ticket);
  struct want *want = *link;
  if (!want)
    return;
  *link = want->next;
  if (want->taker)
    want->taker(want->arg, steal_fd(&arrived));
  else
    keep(supply, want, &arrived);
  free(want);
}
