#include "parent/child_log.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/descriptors.h"
#include "shared/log.h"

#define LINES_PER_WAKEUP 32
#define LINES_PER_SECOND 200 /* further ones of that second are counted */
#define SECOND_MS 1000

struct child_log {
  const char *name;
  int fd;
  struct event *readable;
  uint64_t second_began_ms;
  unsigned lines; /* in this second */
  unsigned long left_out;
};

static void tell_left_out(struct child_log *log)
{
  if (log->left_out > 0)
    log_warning("%s: %lu lines were left out, more than %d a second", log->name, log->left_out, LINES_PER_SECOND);
  log->left_out = 0;
}

static bool within_rate(struct child_log *log)
{
  uint64_t now = clock_monotonic_ms();
  if (now - log->second_began_ms >= SECOND_MS) {
    log->second_began_ms = now;
    log->lines = 0;
    tell_left_out(log);
  }
  return ++log->lines <= LINES_PER_SECOND;
}

/* False: nothing more is there. */
static bool take_line(struct child_log *log)
{
  char packet[1 + LOG_MESSAGE_SIZE];
  ssize_t size = recv(log->fd, packet, sizeof packet, MSG_DONTWAIT);
  if (size < 0)
    return false;
  if (!within_rate(log)) {
    log->left_out++;
    return true;
  }
  /* What does not begin with a level is a library's or a sanitizer's last words. */
  bool has_level = size > 0 && (unsigned char)packet[0] <= LOG_LEVEL_ERROR;
  if (has_level)
    log_write_for(log->name, (enum log_level)packet[0], packet + 1, (size_t)size - 1);
  else
    log_write_for(log->name, LOG_LEVEL_ERROR, packet, (size_t)size);
  return true;
}

static void readable(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  for (int i = 0; i < LINES_PER_WAKEUP; i++)
    if (!take_line(argument))
      return;
}

int child_log_open(struct event_base *base, const char *name, struct child_log **ret, int *ret_child)
{
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
    return -errno;
  cleanup_fd int theirs = pair[1];
  struct child_log *log = calloc(1, sizeof *log);
  if (!log) {
    close(pair[0]);
    return -ENOMEM;
  }
  log->name = name;
  log->fd = pair[0];
  log->readable = event_new(base, log->fd, EV_READ | EV_PERSIST, readable, log);
  if (!log->readable || event_add(log->readable, NULL) < 0) {
    child_log_close(log);
    return -ENOMEM;
  }
  *ret = log;
  *ret_child = steal_fd(&theirs);
  return 0;
}

void child_log_close(struct child_log *log)
{
  if (!log)
    return;
  for (int i = 0; i < LINES_PER_SECOND && take_line(log); i++)
    ;
  tell_left_out(log);
  if (log->readable)
    event_free(log->readable);
  close(log->fd);
  free(log);
}
