#include "tests/confinement/probe.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child/start.h"
#include "shared/limits.h"
#include "tests/confinement/attempt_run.h"

/* Only calls that every role has: epoll_wait, and the channel's two with the channel's flags. */
static void wait_for_channel(int epoll)
{
  struct epoll_event event;
  while (epoll_wait(epoll, &event, 1, -1) < 0 && errno == EINTR)
    ;
}

static bool take_order(struct scene *scene, struct probe_order *ret)
{
  union {
    char bytes[CMSG_SPACE(2 * sizeof(int))];
    struct cmsghdr align;
  } control;
  struct iovec io = {.iov_base = ret, .iov_len = sizeof *ret};
  struct msghdr header = {
    .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  wait_for_channel(scene->epoll);
  if (recvmsg(CHILD_CHANNEL_FD, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof *ret)
    return false;
  struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
  if (!rights || rights->cmsg_len != CMSG_LEN(2 * sizeof(int)))
    return false;
  memcpy(&scene->session, CMSG_DATA(rights), sizeof(int));
  memcpy(&scene->spare_session, CMSG_DATA(rights) + sizeof(int), sizeof(int));
  return true;
}

static void report(const struct attempt_result *result)
{
  struct iovec io = {.iov_base = (void *)(uintptr_t)result, .iov_len = sizeof *result};
  struct msghdr header = {.msg_iov = &io, .msg_iovlen = 1};
  (void)!sendmsg(CHILD_CHANNEL_FD, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int probe_main(enum role role)
{
  struct scene scene;
  struct epoll_event readable = {.events = EPOLLIN};
  if (scene_prepare(&scene) < 0 || epoll_ctl(scene.epoll, EPOLL_CTL_ADD, CHILD_CHANNEL_FD, &readable) < 0)
    return 1;
  child_start(role);
  struct probe_order order;
  if (!take_order(&scene, &order))
    return 0;
  if (order.attempt >= attempts_count) {
    wait_for_channel(scene.epoll);
    return 0;
  }
  struct attempt_result result = attempt_run(&attempts[order.attempt], &scene);
  report(&result);
  return 0;
}
