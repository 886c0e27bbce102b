/* The benchmark's yardstick: what a CONNECT relay costs that asks nobody, records nothing and is confined by nothing.
   `bare_relay ORIGIN_PORT`: every CONNECT, whatever it names, goes to that port on loopback. Prints its own port. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 256
#define HEAD_BYTES 4096
#define BUFFER_BYTES (64 * 1024)

struct session;

struct side {
  struct session *session;
  int fd;
  bool ended; /* its end of stream was passed on */
  char *held; /* what this side could not take yet */
  size_t held_length;
  size_t held_done;
};

struct session {
  struct side client;
  struct side upstream;
  size_t head_length;
  bool connecting;
  bool dead; /* closed within this round; its events are stale */
  struct session *next_dead;
  char head[HEAD_BYTES + 1];
};

static int epoll;
static struct sockaddr_in origin;
static struct session *dead;
static char buffer[BUFFER_BYTES];

static void watch(int operation, struct side *side, uint32_t events)
{
  struct epoll_event want = {.events = events, .data.ptr = side};
  epoll_ctl(epoll, operation, side->fd, &want);
}

static void end(struct session *session)
{
  if (session->dead)
    return;
  session->dead = true;
  close(session->client.fd);
  if (session->upstream.fd >= 0)
    close(session->upstream.fd);
  session->next_dead = dead;
  dead = session;
}

static void free_dead(void)
{
  while (dead) {
    struct session *next = dead->next_dead;
    free(dead->client.held);
    free(dead->upstream.held);
    free(dead);
    dead = next;
  }
}

static struct side *other(struct side *side)
{
  struct session *session = side->session;
  return side == &session->client ? &session->upstream : &session->client;
}

/* Keeps what `to` did not take, and stops reading from the other side until it has. */
static void hold(struct side *to, const char *bytes, size_t length)
{
  to->held = malloc(length);
  if (!to->held) {
    end(to->session);
    return;
  }
  memcpy(to->held, bytes, length);
  to->held_length = length;
  to->held_done = 0;
  watch(EPOLL_CTL_MOD, to, EPOLLOUT | (other(to)->held ? 0 : EPOLLIN));
  watch(EPOLL_CTL_MOD, other(to), other(to)->held ? EPOLLOUT : 0);
}

static void send_held(struct side *side)
{
  ssize_t sent = send(side->fd, side->held + side->held_done, side->held_length - side->held_done, MSG_NOSIGNAL);
  if (sent < 0 && errno == EAGAIN)
    return;
  if (sent < 0) {
    end(side->session);
    return;
  }
  side->held_done += (size_t)sent;
  if (side->held_done < side->held_length)
    return;
  free(side->held);
  side->held = NULL;
  watch(EPOLL_CTL_MOD, side, other(side)->held ? 0 : EPOLLIN);
  watch(EPOLL_CTL_MOD, other(side), EPOLLIN | (other(side)->held ? EPOLLOUT : 0));
}

static void relay(struct side *from)
{
  struct side *to = other(from);
  ssize_t got = recv(from->fd, buffer, sizeof buffer, 0);
  if (got < 0 && errno == EAGAIN)
    return;
  if (got < 0) {
    end(from->session);
    return;
  }
  if (got == 0) {
    from->ended = true;
    if (to->ended) {
      end(from->session);
      return;
    }
    shutdown(to->fd, SHUT_WR);
    watch(EPOLL_CTL_MOD, from, 0);
    return;
  }
  ssize_t sent = send(to->fd, buffer, (size_t)got, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) {
    end(from->session);
    return;
  }
  if (sent < 0)
    sent = 0;
  if (sent < got)
    hold(to, buffer + sent, (size_t)(got - sent));
}

static void dial(struct session *session)
{
  struct side *upstream = &session->upstream;
  int on = 1;
  upstream->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  setsockopt(upstream->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(upstream->fd, (struct sockaddr *)&origin, sizeof origin) < 0 && errno != EINPROGRESS) {
    end(session);
    return;
  }
  session->connecting = true;
  watch(EPOLL_CTL_MOD, &session->client, 0);
  watch(EPOLL_CTL_ADD, upstream, EPOLLOUT);
}

static void read_head(struct session *session)
{
  ssize_t got = recv(session->client.fd, session->head + session->head_length, HEAD_BYTES - session->head_length, 0);
  if (got < 0 && errno == EAGAIN)
    return;
  if (got <= 0) {
    end(session);
    return;
  }
  session->head_length += (size_t)got;
  if (!strstr(session->head, "\r\n\r\n")) {
    if (session->head_length == HEAD_BYTES)
      end(session);
    return;
  }
  if (strncmp(session->head, "CONNECT ", 8) == 0)
    dial(session);
  else
    end(session);
}

static void connected(struct session *session)
{
  static const char answer[] = "HTTP/1.1 200 Connection Established\r\n\r\n";
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(session->upstream.fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error || send(session->client.fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) {
    end(session);
    return;
  }
  session->connecting = false;
  watch(EPOLL_CTL_MOD, &session->client, EPOLLIN);
  watch(EPOLL_CTL_MOD, &session->upstream, EPOLLIN);
}

static void turn(struct side *side, uint32_t events)
{
  struct session *session = side->session;
  if (session->dead)
    return;
  if (session->connecting)
    connected(session);
  else if (session->upstream.fd < 0)
    read_head(session);
  else if (side->held && (events & EPOLLOUT))
    send_held(side);
  else
    relay(side);
}

static void accept_all(int listener)
{
  for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
      close(fd);
      return;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    session->client = (struct side){.session = session, .fd = fd};
    session->upstream = (struct side){.session = session, .fd = -1};
    watch(EPOLL_CTL_ADD, &session->client, EPOLLIN);
  }
}

static int listen_on_loopback(void)
{
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof here;
  if (listener < 0 || bind(listener, (struct sockaddr *)&here, length) < 0 || listen(listener, SOMAXCONN) < 0 ||
      getsockname(listener, (struct sockaddr *)&here, &length) < 0)
    return -1;
  printf("%u\n", ntohs(here.sin_port));
  fflush(stdout);
  return listener;
}

int main(int argc, char **argv)
{
  if (argc != 2) {
    fprintf(stderr, "usage: bare_relay ORIGIN_PORT\n");
    return 2;
  }
  origin = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10))};
  epoll = epoll_create1(EPOLL_CLOEXEC);
  int listener = listen_on_loopback();
  struct epoll_event want = {.events = EPOLLIN, .data.ptr = NULL};
  if (epoll < 0 || listener < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &want) < 0) {
    perror("bare_relay");
    return EXIT_FAILURE;
  }
  for (;;) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(epoll, events, EVENTS, -1);
    for (int i = 0; i < count; i++) {
      if (!events[i].data.ptr)
        accept_all(listener);
      else
        turn(events[i].data.ptr, events[i].events);
    }
    free_dead();
  }
}
