#include "tests/unit/worker_stage.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child/worker/worker.h"
#include "shared/channel.h"
#include "shared/descriptors.h"
#include "shared/log.h"

#define PATIENCE_MS 10000
#define SMALL_BUFFER 4096

pid_t stage_worker;
struct counters *stage_counters;

static int channel;
static int listener;
static int log_file;
static bool small_sockets;

struct stage_options stage_defaults(void)
{
  return (struct stage_options){.settings = {.type = MSG_WORKER_SETTINGS,
                                             .credit = WORKER_CREDIT,
                                             .head_timeout_ms = PATIENCE_MS,
                                             .answer_timeout_ms = PATIENCE_MS,
                                             .tunnel_idle_ms = PATIENCE_MS,
                                             .half_open_idle_ms = PATIENCE_MS,
                                             .buffered_bytes = 256 * 1024,
                                             .buffered_total_bytes = 64 * 1024 * 1024,
                                             .sessions_max = 1024,
                                             .log_level = LOG_LEVEL_DEBUG}};
}

/* A stopped worker that goes on is a signal to its parent, and reads with a time limit are not restarted. */
static ssize_t read_on(int fd, void *ret, size_t size)
{
  ssize_t got;
  do
    got = read(fd, ret, size);
  while (got < 0 && errno == EINTR);
  return got;
}

static void make_small(int fd)
{
  int bytes = SMALL_BUFFER;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

static int listen_somewhere(bool small)
{
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (small)
    make_small(fd);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
  cr_assert_eq(listen(fd, 1024), 0);
  return fd;
}

static int connect_to(int listening)
{
  struct sockaddr_in in;
  socklen_t length = sizeof in;
  cr_assert_eq(getsockname(listening, (struct sockaddr *)&in, &length), 0);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (small_sockets)
    make_small(fd);
  struct timeval limit = {.tv_sec = PATIENCE_MS / 1000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  cr_assert_eq(connect(fd, (struct sockaddr *)&in, length), 0, "connect: %s", strerror(errno));
  return fd;
}

static void run_worker(int worker_channel)
{
  struct msg_ready ready = {.type = MSG_READY};
  signal(SIGPIPE, SIG_IGN);
  dup2(log_file, STDERR_FILENO);
  dup2(listener, CHILD_LISTENER_FD_FIRST);
  descriptor_set_nonblocking(CHILD_LISTENER_FD_FIRST, true);
  struct worker *worker = worker_new("worker", worker_channel, stage_counters);
  if (!worker || worker_start(worker) < 0)
    exit(9);
  channel_send(worker_channel, &ready, -1);
  while (worker_turn(worker, true))
    ;
  int code = worker->exit_code;
  worker_free(worker);
  exit(code);
}

void stage_start(const struct stage_options *options)
{
  int theirs;
  signal(SIGPIPE, SIG_IGN);
  small_sockets = options->small_sockets;
  stage_counters = mmap(NULL, sizeof *stage_counters, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  log_file = memfd_create("log", MFD_CLOEXEC);
  listener = listen_somewhere(small_sockets);
  cr_assert_eq(channel_pair(&channel, &theirs), 0);
  if (options->small_channel)
    make_small(theirs);
  /* A high number of its own, so that the listener's fixed one is free. */
  int moved = fcntl(theirs, F_DUPFD_CLOEXEC, CHILD_LISTENER_FD_END);
  close(theirs);
  stage_worker = fork();
  if (stage_worker == 0) {
    close(channel);
    run_worker(moved);
  }
  close(moved);
  stage_receive(MSG_READY, NULL);
  stage_send(&options->settings, -1);
  struct msg_listener accept_from = {.type = MSG_LISTENER, .descriptor = CHILD_LISTENER_FD_FIRST};
  stage_send(&accept_from, -1);
}

int stage_await_end(void)
{
  int status;
  cr_assert_eq(waitpid(stage_worker, &status, 0), stage_worker);
  cr_assert(WIFEXITED(status), "the worker was killed by signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}

int stage_stop(void)
{
  close(channel);
  int code = stage_await_end();
  close(listener);
  close(log_file);
  return code;
}

bool stage_logged(const char *text)
{
  char log[65536];
  ssize_t length = pread(log_file, log, sizeof log, 0);
  return length > 0 && memmem(log, (size_t)length, text, strlen(text));
}

size_t stage_descriptors(void)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd", (int)stage_worker);
  DIR *directory = opendir(path);
  cr_assert(directory);
  size_t count = 0;
  while (readdir(directory))
    count++;
  closedir(directory);
  return count;
}

bool stage_has_descriptor(int descriptor)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)stage_worker, descriptor);
  return access(path, F_OK) == 0;
}

static bool fdinfo_has(const char *name, int descriptor)
{
  char path[320];
  char line[256];
  snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", (int)stage_worker, name);
  FILE *info = fopen(path, "re");
  bool found = false;
  while (info && !found && fgets(line, sizeof line, info)) {
    int watched;
    unsigned events;
    found =
      sscanf(line, "tfd: %d events: %x", &watched, &events) == 2 && watched == descriptor && events & EPOLLEXCLUSIVE;
  }
  if (info)
    fclose(info);
  return found;
}

bool stage_watches_exclusively(int descriptor)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd", (int)stage_worker);
  DIR *directory = opendir(path);
  cr_assert(directory);
  bool found = false;
  for (struct dirent *entry; !found && (entry = readdir(directory));)
    found = fdinfo_has(entry->d_name, descriptor);
  closedir(directory);
  return found;
}

void stage_pause(void)
{
  int status;
  kill(stage_worker, SIGSTOP);
  cr_assert_eq(waitpid(stage_worker, &status, WUNTRACED), stage_worker);
  cr_assert(WIFSTOPPED(status));
}

void stage_continue(void)
{
  kill(stage_worker, SIGCONT);
}

int stage_client(void)
{
  return connect_to(listener);
}

void stage_write(int fd, const void *bytes, size_t length)
{
  const char *from = bytes;
  while (length > 0) {
    ssize_t written = write(fd, from, length);
    cr_assert_gt(written, 0, "write: %s", strerror(errno));
    from += written;
    length -= (size_t)written;
  }
}

void stage_write_text(int fd, const char *text)
{
  stage_write(fd, text, strlen(text));
}

void stage_read(int fd, void *ret, size_t length)
{
  char *to = ret;
  while (length > 0) {
    ssize_t got = read_on(fd, to, length);
    cr_assert_gt(got, 0, "read: %s, %zu bytes are missing", got < 0 ? strerror(errno) : "end of stream", length);
    to += got;
    length -= (size_t)got;
  }
}

size_t stage_read_all(int fd, char *ret, size_t size)
{
  size_t length = 0;
  for (;;) {
    ssize_t got = read_on(fd, ret + length, size - length);
    cr_assert_geq(got, 0, "read: %s", strerror(errno));
    if (got == 0)
      return length;
    length += (size_t)got;
    cr_assert_lt(length, size);
  }
}

void stage_expect_end(int fd)
{
  char byte;
  ssize_t got = read_on(fd, &byte, 1);
  cr_assert_eq(got, 0, "no end of stream but %s", got < 0 ? strerror(errno) : "a byte");
}

void stage_expect_reset(int fd)
{
  char byte;
  ssize_t got = read_on(fd, &byte, 1);
  int error = errno;
  cr_assert(got < 0 && error == ECONNRESET, "no reset but %s", got < 0 ? strerror(error) : got ? "a byte" : "an end");
}

void stage_reset(int fd)
{
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
  close(fd);
}

union message stage_receive(enum message_type type, int *ret_descriptor)
{
  static union message message;
  int descriptor = -1;
  const char *wrong = NULL;
  struct pollfd readable = {.fd = channel, .events = POLLIN};
  int ready;
  do
    ready = poll(&readable, 1, PATIENCE_MS);
  while (ready < 0 && errno == EINTR);
  cr_assert_eq(ready, 1, "no %s came", message_name(type));
  enum channel_result result = channel_receive(channel, LINK_WORKER, TO_PARENT, &message, &descriptor, &wrong);
  cr_assert_eq(result, CHANNEL_MESSAGE, "no message but %d: %s", (int)result, wrong ? wrong : "-");
  cr_assert_eq(message.type, type, "%s came instead of %s", message_name(message.type), message_name(type));
  if (ret_descriptor)
    *ret_descriptor = descriptor;
  else
    descriptor_close(&descriptor);
  return message;
}

bool stage_silent(void)
{
  struct pollfd readable = {.fd = channel, .events = POLLIN};
  return poll(&readable, 1, 0) == 0;
}

/* The loop serves its connections in the order in which they became ready: when the last of several new clients has
   been served, all that was ready before has been looked at as often. */
void stage_fence(void)
{
  for (int i = 0; i < 8; i++) {
    int fence = stage_client();
    stage_write_text(fence, "CONNECT fence.test:443 HTTP/1.1\r\nHost: fence.test:443\r\n\r\n");
    uint64_t ask = stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask;
    stage_reset(fence);
    cr_assert_eq(stage_receive(MSG_ABANDON, NULL).ABANDON.ask, ask);
  }
}

void stage_send(const void *message, int descriptor)
{
  cr_assert_eq(channel_send(channel, message, descriptor), 0);
}

void stage_refuse(uint64_t ask, enum reason reason)
{
  struct msg_refusal refusal = {.type = MSG_REFUSAL, .reason = (uint16_t)reason, .ask = ask, .session = 1};
  stage_send(&refusal, -1);
}

int stage_grant(uint64_t ask, uint64_t session)
{
  int listening = listen_somewhere(small_sockets);
  int far = connect_to(listening);
  int near = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  cr_assert_geq(near, 0);
  close(listening);
  struct msg_grant grant = {.type = MSG_GRANT, .ask = ask, .session = session};
  stage_send(&grant, near);
  close(near);
  return far;
}

void stage_tunnel(uint64_t session, int *ret_client, int *ret_far)
{
  static const char established[] = "HTTP/1.1 200 Connection Established\r\n\r\n";
  char answer[sizeof established] = "";
  *ret_client = stage_client();
  stage_write_text(*ret_client, "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n");
  *ret_far = stage_grant(stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask, session);
  stage_read(*ret_client, answer, sizeof established - 1);
  cr_assert_str_eq(answer, established);
}

struct msg_session_closed stage_closed(uint64_t session, enum ending ending)
{
  struct msg_session_closed closed = stage_receive(MSG_SESSION_CLOSED, NULL).SESSION_CLOSED;
  cr_assert_eq(closed.session, session);
  cr_assert_str_eq(ending_id(closed.ending), ending_id(ending));
  return closed;
}

unsigned char stage_byte(uint64_t seed, uint64_t position)
{
  uint64_t x = (position >> 3) + seed * 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return (unsigned char)(x >> (position & 7) * 8);
}
