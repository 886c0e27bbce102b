/* The benchmark's origin: accepts, sends back what comes, closes after the peer has. Prints its port. Not counted. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 256
#define BUFFER_BYTES (256 * 1024)

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

static void accept_all(int epoll, int listener)
{
  for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
    struct epoll_event want = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &want) < 0)
      close(fd);
  }
}

/* Blocking writes: the benchmark's load reads what it has sent. */
static void echo(int fd)
{
  static char buffer[BUFFER_BYTES];
  ssize_t got = recv(fd, buffer, sizeof buffer, 0);
  for (ssize_t sent = 0, now; sent < got; sent += now) {
    now = send(fd, buffer + sent, (size_t)(got - sent), MSG_NOSIGNAL);
    if (now < 0)
      got = -1;
  }
  if (got <= 0)
    close(fd);
}

int main(void)
{
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  int listener = listen_on_loopback();
  struct epoll_event want = {.events = EPOLLIN, .data.fd = listener};
  if (epoll < 0 || listener < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &want) < 0) {
    perror("origin");
    return EXIT_FAILURE;
  }
  for (;;) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(epoll, events, EVENTS, -1);
    if (count < 0 && errno != EINTR)
      return EXIT_FAILURE;
    for (int i = 0; i < count; i++) {
      if (events[i].data.fd == listener)
        accept_all(epoll, listener);
      else
        echo(events[i].data.fd);
    }
  }
}
