/* Namespaces and the empty root. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/confinement/steps.h"
#include "shared/descriptors.h"

#define PID_OF_THE_FIRST 1
#define PORT_DISCARD 9
#define EMPTY_ROOT_OPTIONS "size=4k,nr_inodes=2,mode=0555"

/* In a network of its own not even loopback is up. Connecting a datagram socket looks for a route and sends nothing. */
static bool loopback_reachable(void)
{
  cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in loopback = {
    .sin_family = AF_INET, .sin_port = htons(PORT_DISCARD), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return fd >= 0 && connect(fd, (struct sockaddr *)&loopback, sizeof loopback) == 0;
}

int namespaces_check(const struct step_context *context)
{
  if (!context->options->namespaced)
    return step_failed(context->result, EPERM, "the parent could not make them");
  /* What the parent said is checked: an empty root in the system's own mount namespace would be a disaster. */
  if (getpid() != PID_OF_THE_FIRST)
    return step_failed(context->result, EINVAL, "not the first process of a namespace of its own");
  if (loopback_reachable())
    return step_failed(context->result, EINVAL, "a network can be reached");
  return 0;
}

/* The system's directory upon which the empty one is mounted, out of sight of everyone else. */
static int mount_empty(void)
{
  static const char *const places[] = {"/tmp", "/run", "/proc"};
  int error = ENOENT;
  for (size_t i = 0; i < sizeof places / sizeof *places && error == ENOENT; i++) {
    bool mounted =
      mount("none", places[i], "tmpfs", MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC, EMPTY_ROOT_OPTIONS) == 0;
    if (mounted && chdir(places[i]) == 0)
      return 0;
    error = errno;
  }
  return -error;
}

int root_empty(const struct step_context *context)
{
  struct confine_result *result = context->result;
  if (!context->options->namespaced)
    return step_failed(result, EPERM, "without a mount namespace of its own");
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
    return step_failed(result, errno, "private mount tree");
  int failed = mount_empty();
  if (failed < 0)
    return step_failed(result, -failed, "empty file system");
  /* With both the same the old root ends up on top of the new one, and is unmounted from there. */
  if (syscall(SYS_pivot_root, ".", ".") < 0)
    return step_failed(result, errno, "pivot_root");
  if (umount2(".", MNT_DETACH) < 0)
    return step_failed(result, errno, "detaching the old root");
  if (chdir("/") < 0)
    return step_failed(result, errno, "going to the new root");
  return 0;
}

int root_verify(const struct step_context *context)
{
  cleanup_fd int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  if (fd >= 0 || errno != ENOENT)
    return step_unsafe(context->result, "/etc/passwd can be opened");
  if (mkdir("/new", S_IRWXU) == 0 || errno != EROFS)
    return step_unsafe(context->result, "the root can be written");
  return 0;
}
