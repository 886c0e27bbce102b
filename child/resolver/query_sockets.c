#include "child/resolver/query_sockets.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "shared/descriptors.h"

/* One UDP and one TCP socket per nameserver is all that a channel has open at a time. */
#define SOCKETS_PER_CHANNEL (2 * NAMESERVERS_MAX)

/* A question without EDNS: RFC 1035 section 4.2.1. */
#define QUESTION_BYTES_MAX 512

/* Stands for nameserver 0 where c-ares wants an address; the next one for 1, and so on. It never leaves the process. */
#define MADE_UP_ADDRESS_FIRST UINT32_C(0x7f000001)

struct query_socket {
  struct query_sockets *all;
  ares_socket_t handle; /* ARES_SOCKET_BAD: the slot is free */
  enum socket_kind kind;
  unsigned server;
  int fd;          /* -1: still to come */
  uint64_t ticket; /* 0: none open */
  bool failed;     /* it cannot be had: the next read says so */
  struct event event;
  short watched;                              /* what the event is added for; 0: not added */
  short wanted;                               /* what c-ares wants to hear of */
  unsigned packets;                           /* read in all */
  unsigned packets_now;                       /* read in this wakeup */
  unsigned char question[QUESTION_BYTES_MAX]; /* UDP: sent as soon as the descriptor comes */
  size_t question_length;
};

struct query_sockets {
  struct event_base *base;
  struct socket_supply *supply;
  query_sockets_ready *ready;
  void *arg;
  ares_socket_t last_handle;
  struct query_socket slots[SOCKETS_PER_CHANNEL];
};

static struct query_socket *find(struct query_sockets *sockets, ares_socket_t handle)
{
  for (size_t i = 0; i < SOCKETS_PER_CHANNEL; i++)
    if (sockets->slots[i].handle == handle && handle != ARES_SOCKET_BAD)
      return &sockets->slots[i];
  errno = EBADF;
  return NULL;
}

static void unwatch(struct query_socket *socket)
{
  if (socket->watched)
    event_del(&socket->event);
  socket->watched = 0;
}

static void socket_event(evutil_socket_t fd, short what, void *arg)
{
  (void)fd;
  struct query_socket *socket = arg;
  socket->packets_now = 0;
  socket->all->ready(socket->all->arg, what & EV_READ ? socket->handle : ARES_SOCKET_BAD,
                     what & EV_WRITE ? socket->handle : ARES_SOCKET_BAD);
}

static void watch(struct query_socket *socket)
{
  if (socket->fd < 0 || socket->watched == socket->wanted)
    return;
  unwatch(socket);
  if (socket->wanted == 0)
    return;
  /* Without memory for the event the question times out, as any that is not answered. */
  if (event_assign(&socket->event, socket->all->base, socket->fd, (short)(socket->wanted | EV_PERSIST), socket_event,
                   socket) == 0 &&
      event_add(&socket->event, NULL) == 0)
    socket->watched = socket->wanted;
}

void query_sockets_state(void *arg, ares_socket_t handle, int readable, int writable)
{
  struct query_socket *socket = find(arg, handle);
  if (!socket)
    return;
  socket->wanted = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));
  watch(socket);
}

static void fail(struct query_socket *socket)
{
  socket->failed = true;
  /* c-ares hears of it by a read that fails, and a TCP socket is read before it is written. */
  socket->all->ready(socket->all->arg, socket->handle, ARES_SOCKET_BAD);
}

static void socket_arrived(void *arg, int fd)
{
  struct query_socket *socket = arg;
  socket->ticket = 0;
  socket->fd = fd;
  if (fd < 0 || (socket->question_length > 0 && write(fd, socket->question, socket->question_length) < 0))
    fail(socket);
  else
    watch(socket);
}

static ares_socket_t hook_socket(int domain, int type, int protocol, void *arg)
{
  (void)domain;
  (void)protocol;
  struct query_sockets *sockets = arg;
  for (size_t i = 0; i < SOCKETS_PER_CHANNEL; i++) {
    struct query_socket *socket = &sockets->slots[i];
    if (socket->handle != ARES_SOCKET_BAD)
      continue;
    /* Never the number of one that was closed a moment ago: c-ares may still be acting on that one's readiness. */
    sockets->last_handle = sockets->last_handle == INT_MAX ? 1 : sockets->last_handle + 1;
    *socket = (struct query_socket){
      .all = sockets, .handle = sockets->last_handle, .kind = type == SOCK_DGRAM ? SOCKET_UDP : SOCKET_TCP, .fd = -1};
    return socket->handle;
  }
  errno = EMFILE;
  return ARES_SOCKET_BAD;
}

static int hook_connect(ares_socket_t handle, const struct sockaddr *address, ares_socklen_t length, void *arg)
{
  struct query_sockets *sockets = arg;
  struct query_socket *socket = find(sockets, handle);
  struct sockaddr_in made_up;
  if (!socket || length < sizeof made_up)
    return -1;
  memcpy(&made_up, address, sizeof made_up);
  socket->server = ntohl(made_up.sin_addr.s_addr) - MADE_UP_ADDRESS_FIRST;
  if (socket->kind == SOCKET_UDP)
    socket->fd = socket_supply_take(sockets->supply, socket->server);
  if (socket->fd >= 0)
    return 0;
  socket->ticket = socket_supply_want(sockets->supply, socket->server, socket->kind, socket_arrived, socket);
  if (!socket->ticket) {
    errno = ENETUNREACH;
    return -1;
  }
  if (socket->kind == SOCKET_UDP)
    return 0;
  errno = EINPROGRESS;
  return -1;
}

static int hook_close(ares_socket_t handle, void *arg)
{
  struct query_sockets *sockets = arg;
  struct query_socket *socket = find(sockets, handle);
  if (!socket)
    return -1;
  unwatch(socket);
  if (socket->ticket)
    socket_supply_forget(sockets->supply, socket->ticket);
  descriptor_close(&socket->fd);
  socket->handle = ARES_SOCKET_BAD;
  return 0;
}

/* One datagram. An empty one says nothing (anyone can send it who forges the address): it is passed over. */
static ssize_t read_packet(struct query_socket *socket, void *buffer, size_t size)
{
  while (socket->packets_now < RESOLVER_PACKETS_PER_WAKEUP) {
    ssize_t got = read(socket->fd, buffer, size);
    if (got < 0)
      return -1;
    socket->packets_now++;
    /* Whoever guesses ids gets so many guesses per source port (RFC 5452 section 9.3), then the port is given up. */
    if (++socket->packets > RESOLVER_PACKETS_MAX) {
      errno = ECONNABORTED;
      return -1;
    }
    if (got > 0)
      return got;
  }
  errno = EAGAIN;
  return -1;
}

static ares_ssize_t hook_receive(ares_socket_t handle, void *buffer, size_t size, int flags, struct sockaddr *from,
                                 ares_socklen_t *from_length, void *arg)
{
  (void)flags;
  struct query_socket *socket = find(arg, handle);
  if (!socket)
    return -1;
  if (socket->failed || socket->fd < 0) {
    errno = socket->failed ? ECONNREFUSED : EAGAIN;
    return -1;
  }
  if (from && from_length && *from_length >= sizeof(struct sockaddr_in)) {
    /* The kernel lets nothing through to a connected socket but what its peer sent. */
    struct sockaddr_in made_up = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(MADE_UP_ADDRESS_FIRST + socket->server)};
    memcpy(from, &made_up, sizeof made_up);
    *from_length = sizeof made_up;
  }
  return socket->kind == SOCKET_UDP ? read_packet(socket, buffer, size) : read(socket->fd, buffer, size);
}

static ares_ssize_t hook_send(ares_socket_t handle, const struct iovec *parts, int count, void *arg)
{
  struct query_socket *socket = find(arg, handle);
  if (!socket)
    return -1;
  if (socket->fd >= 0)
    return writev(socket->fd, parts, count);
  if (socket->kind == SOCKET_TCP) {
    errno = EAGAIN;
    return -1;
  }
  /* c-ares takes EAGAIN on UDP for a dead server. The question is the same each time it is sent: the last one is kept.
   */
  if (count != 1 || parts->iov_len > sizeof socket->question) {
    errno = EMSGSIZE;
    return -1;
  }
  memcpy(socket->question, parts->iov_base, parts->iov_len);
  socket->question_length = parts->iov_len;
  return (ares_ssize_t)parts->iov_len;
}

static const struct ares_socket_functions hooks = {
  .asocket = hook_socket,
  .aclose = hook_close,
  .aconnect = hook_connect,
  .arecvfrom = hook_receive,
  .asendv = hook_send,
};

int query_sockets_new(struct event_base *base, struct socket_supply *supply, query_sockets_ready *ready, void *arg,
                      struct query_sockets **ret)
{
  struct query_sockets *sockets = calloc(1, sizeof *sockets);
  if (!sockets)
    return -ENOMEM;
  *sockets = (struct query_sockets){.base = base, .supply = supply, .ready = ready, .arg = arg};
  for (size_t i = 0; i < SOCKETS_PER_CHANNEL; i++)
    sockets->slots[i].handle = ARES_SOCKET_BAD;
  *ret = sockets;
  return 0;
}

void query_sockets_free(struct query_sockets *sockets)
{
  free(sockets);
}

void query_sockets_install(struct query_sockets *sockets, ares_channel channel)
{
  ares_set_socket_functions(channel, &hooks, sockets);
}

int query_sockets_set_servers(ares_channel channel, unsigned servers)
{
  struct ares_addr_port_node nodes[NAMESERVERS_MAX] = {0};
  if (servers > NAMESERVERS_MAX)
    return ARES_EFORMERR;
  for (unsigned i = 0; i < servers; i++) {
    nodes[i].next = i + 1 < servers ? &nodes[i + 1] : NULL;
    nodes[i].family = AF_INET;
    nodes[i].addr.addr4.s_addr = htonl(MADE_UP_ADDRESS_FIRST + i);
  }
  return ares_set_servers_ports(channel, servers > 0 ? nodes : NULL);
}
