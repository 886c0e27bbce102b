#include "parent/readiness.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "shared/descriptors.h"
#include "shared/log.h"

static int newline_fd = -1;
static int notify_fd = -1;

/* sd_notify(3): datagrams to the socket that NOTIFY_SOCKET names; '@' stands for the abstract namespace. */
static int connect_notify_socket(const char *path)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(path);
  if (length < 2 || length >= sizeof address.sun_path)
    return -1;
  memcpy(address.sun_path, path, length);
  if (address.sun_path[0] == '@')
    address.sun_path[0] = '\0';
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  socklen_t used = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, used) < 0)
    descriptor_close(&fd);
  return fd;
}

void readiness_setup(int ready_fd)
{
  newline_fd = ready_fd;
  if (ready_fd >= 0)
    (void)descriptor_set_cloexec(ready_fd, true);
  const char *path = getenv("NOTIFY_SOCKET");
  if (path)
    notify_fd = connect_notify_socket(path);
}

static void notify(const char *state)
{
  if (notify_fd >= 0 && send(notify_fd, state, strlen(state), MSG_NOSIGNAL) < 0)
    log_debug("the service manager could not be notified");
}

void readiness_ready(void)
{
  notify("READY=1");
  if (newline_fd >= 0 && write(newline_fd, "\n", 1) < 0)
    log_warning("readiness could not be written to descriptor %d", newline_fd);
  descriptor_close(&newline_fd);
}

void readiness_stopping(void)
{
  notify("STOPPING=1");
}
