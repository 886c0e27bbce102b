/* sallyport-worker of the hostile tests. As worker 0 it is hostile, as any other it is the real one, whose main is
   linked in as worker_main.

   An order is a connection to the listener that sends "ATTACK [HOST [PORT]]\n", gets "ready\n", sends "go\n", and then
   gets a line for each answer that the parent gives: "grant SESSION" or "refusal REASON". What the process does before
   it says that it is confined stands in the file `at_start` beside the binary, when there is one. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child/start.h"
#include "shared/channel.h"
#include "shared/reasons.h"
#include "tests/hostile/hostile.h"

#define TITLE "sallyport: egress worker 0"
#define CLIENTS_MAX 64
#define LINE_SIZE 512
#define DESCRIPTORS_MAX 250

int worker_main(int argc, char **argv);

static int clients[CLIENTS_MAX];
static size_t client_count;

static void wait_for(int descriptor, short events)
{
  struct pollfd one = {.fd = descriptor, .events = events};
  while (poll(&one, 1, -1) < 0 && errno == EINTR)
    ;
}

void send_raw(const void *bytes, size_t size, const int *descriptors, size_t count)
{
  struct iovec content = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
  union {
    char space[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
    struct cmsghdr align;
  } control = {0};
  struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};
  if (count > 0) {
    message.msg_control = control.space;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
  }
  while (sendmsg(CHILD_CHANNEL_FD, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EAGAIN && errno != ETOOMANYREFS)
      _exit(EXIT_FAILURE);
    wait_for(CHILD_CHANNEL_FD, POLLOUT);
  }
}

static bool receive(union message *ret, int *ret_descriptor)
{
  const char *wrong;
  enum channel_result result = channel_receive(CHILD_CHANNEL_FD, LINK_WORKER, TO_CHILD, ret, ret_descriptor, &wrong);
  if (result == CHANNEL_CLOSED || result == CHANNEL_WRONG || (result == CHANNEL_MESSAGE && ret->type == MSG_DRAIN))
    _exit(EXIT_SUCCESS);
  return result == CHANNEL_MESSAGE;
}

static bool is_answer(const union message *message)
{
  return message->type == MSG_GRANT || message->type == MSG_REFUSAL;
}

void wait_answer(union message *ret, int *ret_descriptor)
{
  do {
    wait_for(CHILD_CHANNEL_FD, POLLIN);
  } while (!receive(ret, ret_descriptor) || !is_answer(ret));
}

static void say(int client, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(int client, const char *format, ...)
{
  char line[LINE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (write(client, line, (size_t)length) != length)
    _exit(EXIT_FAILURE);
}

/* A line without its end; false when the client is gone. */
static bool read_line(int client, char *ret, size_t size)
{
  for (size_t length = 0; length + 1 < size;) {
    wait_for(client, POLLIN);
    if (read(client, ret + length, 1) != 1)
      return false;
    if (ret[length] == '\n') {
      ret[length] = '\0';
      return true;
    }
    length++;
  }
  return false;
}

static const struct attack *find(const char *name)
{
  const struct attack *attack = attacks;
  while (attack->name && strcmp(attack->name, name) != 0)
    attack++;
  return attack->name ? attack : NULL;
}

static char *cut_word(char *line)
{
  char *blank = strchr(line, ' ');
  if (!blank)
    return line + strlen(line);
  *blank = '\0';
  return blank + 1;
}

/* False: the client is done with. */
static bool take_order(int client)
{
  char line[LINE_SIZE], go[LINE_SIZE];
  if (!read_line(client, line, sizeof line))
    return false;
  char *host = cut_word(line);
  char *port = cut_word(host);
  const struct attack *attack = find(line);
  say(client, attack ? "ready\n" : "no such attack\n");
  if (!attack || !read_line(client, go, sizeof go))
    return false;
  attack->run(&(struct order){.client = client, .host = host, .port = port});
  return true;
}

static void report(int client)
{
  union message message;
  int descriptor;
  while (receive(&message, &descriptor)) {
    if (client < 0 || !is_answer(&message))
      continue;
    if (message.type == MSG_GRANT)
      say(client, "grant %llx\n", (unsigned long long)message.GRANT.session);
    else
      say(client, "refusal %s\n", reason_row(message.REFUSAL.reason)->id);
  }
}

static void serve(void)
{
  int last = -1; /* whose order it was */
  for (;;) {
    struct pollfd all[CLIENTS_MAX + 2] = {{.fd = CHILD_CHANNEL_FD, .events = POLLIN},
                                          {.fd = CHILD_LISTENER_FD_FIRST, .events = POLLIN}};
    size_t watched = client_count;
    for (size_t i = 0; i < watched; i++)
      all[i + 2] = (struct pollfd){.fd = clients[i], .events = POLLIN};
    if (poll(all, watched + 2, -1) < 0)
      continue;
    if (all[0].revents)
      report(last);
    if (all[1].revents && client_count < CLIENTS_MAX) {
      int client = accept4(CHILD_LISTENER_FD_FIRST, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client >= 0)
        clients[client_count++] = client;
    }
    for (size_t i = 0; i < watched; i++) {
      if (!all[i + 2].revents)
        continue;
      if (take_order(clients[i]))
        last = clients[i];
      else
        clients[i] = -1; /* the descriptor stays open, poll passes over the number */
    }
  }
}

/* Attacks on the start. They say READY, or do not, without having been confined. */
static void start_as_told(const char *how)
{
  struct msg_ready ready = {.type = MSG_READY, .steps_done = UINT32_MAX};
  if (strcmp(how, "unconfined") == 0) {
    send_raw(&ready, sizeof ready, NULL, 0);
  } else if (strcmp(how, "waives-all") == 0) {
    ready.steps_waived = UINT32_MAX;
    send_raw(&ready, sizeof ready, NULL, 0);
  } else if (strcmp(how, "asks-first") == 0) {
    attacks[0].run(&(struct order){.client = CHILD_LISTENER_FD_FIRST, .host = "allowed.test", .port = "1"});
  } else if (strcmp(how, "silent") != 0) {
    return;
  }
  wait_for(CHILD_CHANNEL_FD, 0); /* to be killed */
}

static void read_how(const char *path, char *ret, size_t size)
{
  ret[0] = '\0';
  FILE *file = fopen(path, "re");
  if (!file)
    return;
  if (!fgets(ret, (int)size, file))
    ret[0] = '\0';
  fclose(file);
}

static void read_start(char *ret, size_t size)
{
  char path[LINE_SIZE] = {0};
  ret[0] = '\0';
  if (readlink("/proc/self/exe", path, sizeof path - sizeof "at_start") < 0)
    return;
  char *name = strrchr(path, '/');
  if (!name)
    return;
  memccpy(name + 1, "at_start", '\0', sizeof "at_start");
  read_how(path, ret, size);
}

int main(int argc, char **argv)
{
  if (argc < 1 || strcmp(argv[0], TITLE) != 0)
    return worker_main(argc, argv);
  char how[LINE_SIZE];
  read_start(how, sizeof how);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  attacks_prepare();
  start_as_told(how);
  child_start(ROLE_WORKER);
  serve();
}
