/* The benchmark's load: opens tunnels by CONNECT, sends one small message (or BYTES of bulk), reads its echo, closes in
   order. `load PROXY_PORT ORIGIN_PORT TUNNELS CONCURRENCY BYTES`. Exit 0 when every tunnel did all of it. Not counted.
 */
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
#define ANSWER_BYTES_MAX 1024
#define CHUNK_BYTES (128 * 1024)

enum stage { ASKING, ECHOING, CLOSING };

struct tunnel {
  int fd;
  enum stage stage;
  size_t sent;
  size_t received;
  size_t answer_length;
  char answer[ANSWER_BYTES_MAX];
};

static struct {
  int epoll;
  struct sockaddr_in proxy;
  char request[128];
  long started;
  long finished;
  long wanted;
  size_t bytes;
} load;
static char chunk[CHUNK_BYTES];

static void fail(const char *what)
{
  fprintf(stderr, "load: %s: %s\n", what, errno ? strerror(errno) : "wrong answer");
  exit(EXIT_FAILURE);
}

static void start(struct tunnel *tunnel)
{
  *tunnel = (struct tunnel){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int on = 1;
  if (tunnel->fd < 0 || connect(tunnel->fd, (struct sockaddr *)&load.proxy, sizeof load.proxy) < 0)
    fail("connect");
  setsockopt(tunnel->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  size_t length = strlen(load.request);
  if (send(tunnel->fd, load.request, length, MSG_NOSIGNAL) != (ssize_t)length)
    fail("request");
  struct epoll_event want = {.events = EPOLLIN, .data.ptr = tunnel};
  if (epoll_ctl(load.epoll, EPOLL_CTL_ADD, tunnel->fd, &want) < 0)
    fail("epoll");
  load.started++;
}

static void send_more(struct tunnel *tunnel)
{
  while (tunnel->sent < load.bytes) {
    size_t left = load.bytes - tunnel->sent;
    ssize_t sent = send(tunnel->fd, chunk, left < sizeof chunk ? left : sizeof chunk, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN)
      fail("send");
    if (sent < 0)
      break;
    tunnel->sent += (size_t)sent;
  }
  uint32_t more = tunnel->sent < load.bytes ? EPOLLOUT : 0;
  struct epoll_event want = {.events = EPOLLIN | more, .data.ptr = tunnel};
  if (load.bytes > sizeof chunk && epoll_ctl(load.epoll, EPOLL_CTL_MOD, tunnel->fd, &want) < 0)
    fail("epoll");
}

static void read_answer(struct tunnel *tunnel)
{
  errno = 0;
  ssize_t got = recv(tunnel->fd, tunnel->answer + tunnel->answer_length,
                     sizeof tunnel->answer - 1 - tunnel->answer_length, MSG_DONTWAIT);
  if (got <= 0)
    fail("answer");
  tunnel->answer_length += (size_t)got;
  if (!strstr(tunnel->answer, "\r\n\r\n"))
    return;
  if (strncmp(tunnel->answer, "HTTP/1.", 7) != 0 || strncmp(tunnel->answer + 8, " 200", 4) != 0) {
    fprintf(stderr, "load: %s\n", tunnel->answer);
    exit(EXIT_FAILURE);
  }
  tunnel->stage = ECHOING;
  send_more(tunnel);
}

static void read_echo(struct tunnel *tunnel)
{
  static char sink[CHUNK_BYTES];
  errno = 0;
  ssize_t got = recv(tunnel->fd, sink, sizeof sink, MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN)
    return;
  if (got <= 0)
    fail("echo");
  tunnel->received += (size_t)got;
  if (tunnel->received < load.bytes)
    return;
  tunnel->stage = CLOSING;
  shutdown(tunnel->fd, SHUT_WR);
}

static void read_end(struct tunnel *tunnel)
{
  char byte;
  errno = 0;
  if (recv(tunnel->fd, &byte, 1, MSG_DONTWAIT) != 0)
    fail("end of stream");
  close(tunnel->fd);
  load.finished++;
  if (load.started < load.wanted)
    start(tunnel);
}

static void turn(struct tunnel *tunnel, uint32_t events)
{
  if (tunnel->stage == ECHOING && (events & EPOLLOUT))
    send_more(tunnel);
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
    return;
  if (tunnel->stage == ASKING)
    read_answer(tunnel);
  else if (tunnel->stage == ECHOING)
    read_echo(tunnel);
  else
    read_end(tunnel);
}

int main(int argc, char **argv)
{
  if (argc != 6) {
    fprintf(stderr, "usage: load PROXY_PORT ORIGIN_PORT TUNNELS CONCURRENCY BYTES\n");
    return 2;
  }
  load.epoll = epoll_create1(EPOLL_CLOEXEC);
  load.proxy = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                    .sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10))};
  snprintf(load.request, sizeof load.request, "CONNECT 127.0.0.1:%s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n", argv[2],
           argv[2]);
  load.wanted = strtol(argv[3], NULL, 10);
  long concurrency = strtol(argv[4], NULL, 10);
  load.bytes = strtoul(argv[5], NULL, 10);
  struct tunnel *tunnels = calloc((size_t)concurrency, sizeof *tunnels);
  if (!tunnels || load.bytes == 0) {
    free(tunnels);
    return EXIT_FAILURE;
  }
  for (long i = 0; i < concurrency && load.started < load.wanted; i++)
    start(&tunnels[i]);
  while (load.finished < load.wanted) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(load.epoll, events, EVENTS, -1);
    for (int i = 0; i < count; i++)
      turn(events[i].data.ptr, events[i].events);
  }
  free(tunnels);
  return 0;
}
