#include "shared/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "shared/descriptors.h"

static void enlarge_buffers(int fd)
{
  int bytes = CHANNEL_BUFFER_BYTES;
  /* FORCE needs CAP_NET_ADMIN; without it the kernel's own maximum applies, which the credit is made for. */
  if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) < 0)
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

int channel_pair(int *ret_parent, int *ret_child)
{
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
    return -errno;
  enlarge_buffers(pair[0]);
  enlarge_buffers(pair[1]);
  *ret_parent = pair[0];
  *ret_child = pair[1];
  return 0;
}

int channel_send(int channel, const void *message, int descriptor)
{
  uint32_t type;
  memcpy(&type, message, sizeof type);
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control = {0};
  struct iovec io = {.iov_base = (void *)(uintptr_t)message, .iov_len = message_size(type)};
  struct msghdr header = {.msg_iov = &io, .msg_iovlen = 1};
  if (descriptor >= 0) {
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof control.bytes;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  for (;;) {
    ssize_t sent = sendmsg(channel, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      return 0;
    if (errno != EINTR)
      return errno == ENOBUFS ? -EAGAIN : -errno;
  }
}

/* Takes every descriptor out of the control data: the first is kept, the rest closed. Returns how many came. */
static int take_descriptors(struct msghdr *header, int *ret_first)
{
  int count = 0;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
      continue;
    size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < here; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      if (count++ == 0)
        *ret_first = fd;
      else
        close(fd);
    }
  }
  return count;
}

enum channel_result channel_receive(int channel, enum link link, enum receiver receiver, union message *ret,
                                    int *ret_descriptor, const char **ret_wrong)
{
  /* Room for four descriptors shows that more than one came, instead of the kernel quietly closing them. */
  union {
    char bytes[CMSG_SPACE(4 * sizeof(int))];
    struct cmsghdr align;
  } control;
  struct iovec io = {.iov_base = ret, .iov_len = sizeof *ret};
  struct msghdr header = {
    .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  ssize_t size;
  do
    size = recvmsg(channel, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);
  *ret_descriptor = -1;
  if (size < 0)
    return errno == EAGAIN ? CHANNEL_EMPTY : CHANNEL_CLOSED;

  cleanup_fd int descriptor = -1;
  int count = take_descriptors(&header, &descriptor);
  if (size == 0)
    return CHANNEL_CLOSED;
  *ret_wrong =
    header.msg_flags & MSG_TRUNC ? "longer than any message" : message_check(ret, (size_t)size, link, receiver);
  if (*ret_wrong)
    return CHANNEL_WRONG;
  int expected = message_has_descriptor(ret->type);
  if (header.msg_flags & MSG_CTRUNC && expected && count == 0)
    return CHANNEL_DESCRIPTOR_LOST;
  if (count != expected || header.msg_flags & MSG_CTRUNC) {
    *ret_wrong = expected ? "one descriptor belongs to it, and another number came"
                          : "a descriptor came that does not belong to it";
    return CHANNEL_WRONG;
  }
  *ret_descriptor = steal_fd(&descriptor);
  return CHANNEL_MESSAGE;
}
