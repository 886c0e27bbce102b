#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/channel.h"

static int ours = -1, theirs = -1;

static void set_up(void)
{
  cr_assert_eq(channel_pair(&ours, &theirs), 0);
}

static void tear_down(void)
{
  close(ours);
  close(theirs);
}

TestSuite(channel, .init = set_up, .fini = tear_down);

/* Sends any bytes with any number of descriptors, as only a hostile peer would. */
static void send_raw(const void *bytes, size_t length, int descriptor, size_t count)
{
  union {
    char bytes[CMSG_SPACE(8 * sizeof(int))];
    struct cmsghdr align;
  } control = {0};
  struct iovec io = {(void *)(uintptr_t)bytes, length};
  struct msghdr header = {.msg_iov = &io, .msg_iovlen = 1};
  if (count > 0) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; i++)
      memcpy(CMSG_DATA(c) + i * sizeof(int), &descriptor, sizeof descriptor);
  }
  cr_assert_eq(sendmsg(theirs, &header, 0), (ssize_t)length);
}

static enum channel_result receive(union message *ret, int *ret_descriptor, const char **ret_wrong)
{
  *ret_wrong = NULL;
  return channel_receive(ours, LINK_WORKER, TO_PARENT, ret, ret_descriptor, ret_wrong);
}

static int open_descriptors(void)
{
  int count = 0;
  for (int fd = 0; fd < 256; fd++)
    count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

Test(channel, a_message_and_its_descriptor_arrive)
{
  struct msg_ask_egress ask = {.type = MSG_ASK_EGRESS, .port = 443, .ask = 7, .host = "example.org"};
  int file = open("/dev/null", O_RDONLY);
  cr_assert_eq(channel_send(theirs, &ask, file), 0);
  union message m;
  int descriptor;
  const char *wrong;
  cr_assert_eq(receive(&m, &descriptor, &wrong), CHANNEL_MESSAGE);
  cr_expect_eq(memcmp(&m, &ask, sizeof ask), 0);
  cr_expect_geq(descriptor, 0);
  cr_expect_neq(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
  close(descriptor);
  close(file);
  cr_expect_eq(receive(&m, &descriptor, &wrong), CHANNEL_EMPTY);
}

Test(channel, descriptors_that_do_not_belong_are_refused_and_closed)
{
  struct msg_abandon abandon = {.type = MSG_ABANDON, .ask = 1};
  struct msg_ask_egress ask = {.type = MSG_ASK_EGRESS, .port = 443, .ask = 7};
  union message m;
  int descriptor;
  const char *wrong;
  int before = open_descriptors();
  for (size_t extra = 1; extra <= 8; extra++) {
    send_raw(&abandon, sizeof abandon, STDIN_FILENO, extra);
    cr_expect_eq(receive(&m, &descriptor, &wrong), CHANNEL_WRONG, "%zu on a message without", extra);
    cr_expect_not_null(wrong);
  }
  for (size_t extra = 2; extra <= 8; extra++) {
    send_raw(&ask, sizeof ask, STDIN_FILENO, extra);
    cr_expect_eq(receive(&m, &descriptor, &wrong), CHANNEL_WRONG, "%zu on a message with one", extra);
  }
  send_raw(&ask, sizeof ask, -1, 0);
  cr_expect_eq(receive(&m, &descriptor, &wrong), CHANNEL_WRONG, "none on a message with one");
  cr_expect_eq(open_descriptors(), before);
}

Test(channel, sizes_are_exact)
{
  union message m;
  int descriptor;
  const char *wrong;
  char large[2 * sizeof m];
  memset(large, 0, sizeof large);
  uint32_t type = MSG_ABANDON;
  memcpy(large, &type, sizeof type);
  static const size_t sizes[] = {1, 3, 4, 15, 17, sizeof m, sizeof m + 1, sizeof large};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    send_raw(large, sizes[i], -1, 0);
    cr_expect_eq(receive(&m, &descriptor, &wrong), CHANNEL_WRONG, "%zu bytes", sizes[i]);
  }
}

Test(channel, a_zero_length_packet_is_an_end)
{
  union message m;
  int descriptor;
  const char *wrong;
  send_raw("", 0, -1, 0);
  cr_expect_eq(receive(&m, &descriptor, &wrong), CHANNEL_CLOSED);
}

Test(channel, a_lost_descriptor_is_told)
{
  struct msg_ask_egress ask = {.type = MSG_ASK_EGRESS, .port = 443, .ask = 7};
  send_raw(&ask, sizeof ask, STDIN_FILENO, 1);
  struct rlimit before, none = {0};
  getrlimit(RLIMIT_NOFILE, &before);
  none.rlim_max = before.rlim_max;
  setrlimit(RLIMIT_NOFILE, &none);
  union message m;
  int descriptor;
  const char *wrong;
  enum channel_result result = receive(&m, &descriptor, &wrong);
  setrlimit(RLIMIT_NOFILE, &before);
  cr_expect_eq(result, CHANNEL_DESCRIPTOR_LOST);
  cr_expect_eq(descriptor, -1);
  cr_expect_eq(m.ASK_EGRESS.ask, 7);
}

Test(channel, a_full_channel_says_so_and_sends_nothing)
{
  struct msg_refusal refusal = {.type = MSG_REFUSAL};
  int sent = 0;
  while (channel_send(ours, &refusal, -1) == 0)
    sent++;
  cr_expect_eq(channel_send(ours, &refusal, -1), -EAGAIN);
  union message m;
  int descriptor, received = 0;
  const char *wrong;
  while (channel_receive(theirs, LINK_WORKER, TO_CHILD, &m, &descriptor, &wrong) == CHANNEL_MESSAGE)
    received++;
  cr_expect_eq(received, sent);
}

Test(channel, a_closed_peer_is_an_error_not_a_signal)
{
  struct msg_drain drain = {.type = MSG_DRAIN};
  close(theirs);
  theirs = -1;
  cr_expect_eq(channel_send(ours, &drain, -1), -EPIPE);
}
