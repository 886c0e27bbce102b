#include "tests/confinement/attempt_run.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE 4096

static _Alignas(PAGE) char buffer[PAGE];
static char byte;
static struct iovec one_byte = {&byte, 1};
static struct msghdr message;
static void *mapping;

int scene_prepare(struct scene *ret)
{
  int ends[2];
  *ret = (struct scene){.session = -1, .spare_session = -1};
  mapping = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ret->epoll = epoll_create1(EPOLL_CLOEXEC);
  if (mapping == MAP_FAILED || ret->epoll < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
    return -errno;
  ret->pipe_out = ends[0];
  ret->pipe_in = ends[1];
  return write(ret->pipe_in, "two", 3) == 3 ? 0 : -errno;
}

static long stands_for(long argument, const struct scene *scene)
{
  switch (argument) {
  case SESSION:
    return scene->session;
  case SPARE_SESSION:
    return scene->spare_session;
  case PIPE_IN:
    return scene->pipe_in;
  case PIPE_OUT:
    return scene->pipe_out;
  case EPOLL:
    return scene->epoll;
  case BUFFER:
    return (long)(uintptr_t)buffer;
  case MESSAGE:
    return (long)(uintptr_t)&message;
  case ONE_BYTE:
    return (long)(uintptr_t)&one_byte;
  case MAPPING:
    return (long)(uintptr_t)mapping;
  default:
    return argument;
  }
}

struct attempt_result attempt_run(const struct attempt *attempt, const struct scene *scene)
{
  long a[ATTEMPT_ARGUMENTS];
  for (size_t i = 0; i < ATTEMPT_ARGUMENTS; i++)
    a[i] = stands_for(attempt->arguments[i], scene);
  errno = 0;
  long value = syscall(attempt->number, a[0], a[1], a[2], a[3], a[4], a[5]);
  return (struct attempt_result){.value = value, .error = value == -1 ? errno : 0};
}
