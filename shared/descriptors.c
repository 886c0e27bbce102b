#include "shared/descriptors.h"

#include <errno.h>
#include <fcntl.h>

static int set_flag(int fd, int get, int set, int flag, bool on)
{
  int flags = fcntl(fd, get);
  if (flags < 0)
    return -errno;
  int wanted = on ? flags | flag : flags & ~flag;
  if (wanted != flags && fcntl(fd, set, wanted) < 0)
    return -errno;
  return 0;
}

int descriptor_set_nonblocking(int fd, bool on)
{
  return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int descriptor_set_cloexec(int fd, bool on)
{
  return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}
