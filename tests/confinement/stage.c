#include "tests/confinement/stage.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parent/spawn.h"
#include "shared/channel.h"
#include "shared/descriptors.h"

#define PATIENCE_MS 20000
#define PROBE_DESCRIPTORS 1024
#define COUNTERS_BYTES 4096

static int listener = -1;
static int counters = -1;

const char *stage_folder(void)
{
  static char folder[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  cr_assert(length > 0);
  folder[length] = '\0';
  strrchr(folder, '/')[1] = '\0';
  return folder;
}

const char *stage_probe_binary(enum role role)
{
  static int opened[ROLE_COUNT];
  static char path[64];
  if (!opened[role]) {
    char real[PATH_MAX + 32];
    snprintf(real, sizeof real, "%sprobe-%s", stage_folder(), role == ROLE_WORKER ? "worker" : "resolver");
    opened[role] = open(real, O_PATH | O_CLOEXEC);
    cr_assert(opened[role] >= 0, "%s is missing", real);
  }
  /* Above what the child rearranges. */
  int high = fcntl(opened[role], F_DUPFD_CLOEXEC, PROBE_DESCRIPTORS / 2);
  close(opened[role]);
  opened[role] = high;
  snprintf(path, sizeof path, "/proc/self/fd/%d", high);
  return path;
}

static int connect_to_listener(void)
{
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  cr_assert(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
  cr_assert(connect(fd, (struct sockaddr *)&address, length) == 0);
  return fd;
}

void stage_prepare(void)
{
  struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  cr_assert(bind(listener, (struct sockaddr *)&loopback, sizeof loopback) == 0 && listen(listener, 16) == 0);
  counters = memfd_create("counters", MFD_CLOEXEC);
  cr_assert(counters >= 0 && ftruncate(counters, COUNTERS_BYTES) == 0);
  (void)connect_to_listener(); /* stays until the process ends: the client that a probe accepts */
}

static bool wait_readable(int fd)
{
  struct pollfd look = {.fd = fd, .events = POLLIN};
  int ready;
  do
    ready = poll(&look, 1, PATIENCE_MS);
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

static int wait_for_end(pid_t pid)
{
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  return status;
}

static int wait_for_ready(struct probe *probe)
{
  union message message;
  int descriptor = -1;
  const char *wrong = NULL;
  enum link link = probe->role == ROLE_WORKER ? LINK_WORKER : LINK_RESOLVER;
  if (!wait_readable(probe->channel))
    return -ETIMEDOUT;
  if (channel_receive(probe->channel, link, TO_PARENT, &message, &descriptor, &wrong) != CHANNEL_MESSAGE)
    return -EPIPE;
  probe->ready = message.READY;
  return message.type == MSG_READY ? 0 : -EPROTO;
}

int probe_start(enum role role, struct probe *ret)
{
  bool root = geteuid() == 0;
  cleanup_fd int theirs = -1;
  *ret = (struct probe){.role = role, .channel = -1};
  cr_assert(channel_pair(&ret->channel, &theirs) == 0);
  const struct spawn_descriptor descriptors[] = {
    {theirs, CHILD_CHANNEL_FD}, {counters, CHILD_COUNTERS_FD}, {listener, CHILD_LISTENER_FD_FIRST}};
  const struct spawn_request request = {
    .role = role,
    .binary = stage_probe_binary(role),
    .title = role == ROLE_WORKER ? "sallyport: egress worker 0" : "sallyport: resolver",
    .best_effort = !root,
    .uid = root ? UNPRIVILEGED : geteuid(),
    .gid = root ? UNPRIVILEGED : getegid(),
    .descriptors_max = PROBE_DESCRIPTORS,
    .descriptors = descriptors,
    .descriptor_count = role == ROLE_WORKER ? 3 : 1,
  };
  int failed = spawn_child(&request, &ret->pid);
  descriptor_close(&theirs);
  if (failed == 0) {
    failed = wait_for_ready(ret);
    if (failed < 0)
      (void)wait_for_end(ret->pid);
  }
  if (failed < 0)
    descriptor_close(&ret->channel);
  return failed;
}

static void send_order(struct probe *probe, uint32_t attempt)
{
  cleanup_fd int session = connect_to_listener();
  cleanup_fd int spare = connect_to_listener();
  const int sessions[2] = {session, spare};
  union {
    char bytes[CMSG_SPACE(sizeof sessions)];
    struct cmsghdr align;
  } control = {0};
  struct iovec io = {.iov_base = &attempt, .iov_len = sizeof attempt};
  struct msghdr header = {
    .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof sessions);
  memcpy(CMSG_DATA(rights), sessions, sizeof sessions);
  cr_assert(sendmsg(probe->channel, &header, MSG_NOSIGNAL) == sizeof attempt);
}

/* What it accepted and what was refused must not fill the queue. */
static void empty_listener(void)
{
  int client;
  while ((client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
    close(client);
  close(connect_to_listener()); /* even closed, the next accept gets it */
}

int probe_try(struct probe *probe, size_t attempt, bool *ret_returned, struct attempt_result *ret)
{
  send_order(probe, (uint32_t)attempt);
  *ret_returned = wait_readable(probe->channel) && read(probe->channel, ret, sizeof *ret) == sizeof *ret;
  int status = probe_stop(probe);
  empty_listener();
  return status;
}

void probe_keep(struct probe *probe)
{
  send_order(probe, (uint32_t)attempts_count);
}

int probe_stop(struct probe *probe)
{
  descriptor_close(&probe->channel);
  return wait_for_end(probe->pid);
}

static unsigned copy_failures;

bool stage_check(bool holds, const char *condition, const char *format, ...)
{
  if (holds)
    return true;
  char detail[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
  dprintf(STDERR_FILENO, "does not hold: %s%s\n", condition, detail);
  copy_failures++;
  return false;
}

void stage_in_copy(bool (*work)(void))
{
  pid_t pid = fork();
  if (pid == 0) {
    bool finished = work();
    _exit(finished && copy_failures == 0 ? 0 : 1);
  }
  int status = wait_for_end(pid);
  cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x; what does not hold stands above", status);
}
