#include "tests/unit/resolver_bench.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child/resolver/resolver.h"
#include "shared/channel.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/text.h"

#define PATIENCE_MS 10000
#define SERVED_MAX 2048

struct served {
  int fd;
  unsigned server;
  bool tcp;
  unsigned number;
};

void (*bench_nameserver)(const struct bench_question *question);
bool (*bench_refuses)(unsigned server, enum socket_kind kind);
unsigned bench_questions;
struct bench_question bench_asked[4096];

static struct resolver *resolver;
static pthread_t thread;
static int channel = -1, child_end = -1, run_result;
static struct served served[SERVED_MAX];
static size_t served_count;
static unsigned sockets_handed;
static struct msg_lookup_answer answers[2048];
static size_t answer_count;
static uint64_t last_lookup;

static void *run(void *arg)
{
  run_result = resolver_run(arg);
  (void)shutdown(child_end, SHUT_RDWR);
  return NULL;
}

void bench_start(void)
{
  log_setup("test", LOG_LEVEL_ERROR, false);
  /* As main does; the test writes to sockets that the resolver may have closed, too. */
  (void)signal(SIGPIPE, SIG_IGN);
  bench_nameserver = NULL;
  bench_refuses = NULL;
  cr_assert_eq(channel_pair(&channel, &child_end), 0);
  cr_assert_eq(resolver_new(child_end, &resolver), 0);
  cr_assert_eq(pthread_create(&thread, NULL, run, resolver), 0);
}

int bench_end(void)
{
  close(channel);
  channel = -1;
  pthread_join(thread, NULL);
  return run_result;
}

void bench_stop(void)
{
  if (channel >= 0)
    (void)bench_end();
  resolver_free(resolver);
  close(child_end);
  for (size_t i = 0; i < served_count; i++)
    close(served[i].fd);
}

void bench_send(const void *message, int descriptor)
{
  struct pollfd writable = {.fd = channel, .events = POLLOUT};
  int result;
  while ((result = channel_send(channel, message, descriptor)) == -EAGAIN)
    cr_assert_eq(poll(&writable, 1, PATIENCE_MS), 1);
  cr_assert_eq(result, 0);
}

void bench_settings(unsigned servers, uint32_t timeout_ms)
{
  struct msg_resolver_settings settings = {
    .type = MSG_RESOLVER_SETTINGS, .servers = servers, .timeout_ms = timeout_ms, .log_level = LOG_LEVEL_ERROR};
  bench_send(&settings, -1);
}

void bench_hosts(const char *text)
{
  int fd = memfd_create("hosts", MFD_CLOEXEC);
  size_t length = strlen(text);
  cr_assert_eq(write(fd, text, length), (ssize_t)length);
  struct msg_hosts_file message = {.type = MSG_HOSTS_FILE, .bytes = (uint32_t)length};
  bench_send(&message, fd);
  close(fd);
}

void bench_lookup(uint64_t id, const char *name)
{
  struct msg_lookup message = {.type = MSG_LOOKUP, .lookup = id};
  cr_assert(text_fill(message.name, sizeof message.name, name));
  bench_send(&message, -1);
}

static void hand_socket(const struct msg_want_socket *want)
{
  cr_assert_lt(served_count, (size_t)SERVED_MAX);
  int pair[2];
  /* SEQPACKET keeps packets apart as UDP does, and shows besides when the resolver has closed its end. */
  int type = want->kind == SOCKET_UDP ? SOCK_SEQPACKET : SOCK_STREAM;
  cr_assert_eq(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
  struct msg_socket message = {.type = MSG_SOCKET, .ticket = want->ticket};
  bench_send(&message, pair[1]);
  close(pair[1]);
  served[served_count++] =
    (struct served){.fd = pair[0], .server = want->server, .tcp = want->kind == SOCKET_TCP, .number = sockets_handed++};
}

static void channel_serve(void)
{
  union message message;
  int descriptor;
  const char *wrong = "nothing";
  enum channel_result result = channel_receive(channel, LINK_RESOLVER, TO_PARENT, &message, &descriptor, &wrong);
  if (result == CHANNEL_EMPTY)
    return;
  cr_assert_eq(result, CHANNEL_MESSAGE, "the resolver is gone, or wrong: %s", wrong);
  if (message.type == MSG_LOOKUP_ANSWER) {
    cr_assert_lt(answer_count, sizeof answers / sizeof answers[0]);
    answers[answer_count++] = message.LOOKUP_ANSWER;
    return;
  }
  cr_assert_eq(message.type, MSG_WANT_SOCKET);
  const struct msg_want_socket *want = &message.WANT_SOCKET;
  struct msg_socket_failed failed = {.type = MSG_SOCKET_FAILED, .ticket = want->ticket};
  if (bench_refuses && bench_refuses(want->server, want->kind))
    bench_send(&failed, -1);
  else
    hand_socket(want);
}

static void parse_question(const unsigned char *bytes, size_t length, struct bench_question *ret)
{
  cr_assert_gt(length, 16u);
  ret->id = (unsigned)bytes[0] << 8 | bytes[1];
  size_t at = 12, used = 0;
  while (bytes[at]) {
    memcpy(ret->name + used, bytes + at + 1, bytes[at]);
    used += bytes[at];
    at += 1u + bytes[at];
    ret->name[used++] = bytes[at] ? '.' : '\0';
  }
  ret->type = (unsigned)bytes[at + 1] << 8 | bytes[at + 2];
}

/* False when the socket is at its end. */
static bool socket_serve(const struct served *socket)
{
  unsigned char bytes[1024];
  ssize_t got = read(socket->fd, bytes, sizeof bytes);
  if (got <= 0)
    return got < 0 && errno == EAGAIN;
  struct bench_question question = {
    .fd = socket->fd, .server = socket->server, .tcp = socket->tcp, .socket_number = socket->number};
  size_t skip = socket->tcp ? 2 : 0;
  parse_question(bytes + skip, (size_t)got - skip, &question);
  bench_asked[bench_questions++ % (sizeof bench_asked / sizeof bench_asked[0])] = question;
  if (bench_nameserver)
    bench_nameserver(&question);
  return true;
}

/* One turn: waits for anything, and serves it. */
static void serve(uint64_t until_ms)
{
  static struct pollfd polls[SERVED_MAX + 1];
  size_t count = served_count;
  polls[0] = (struct pollfd){.fd = channel, .events = POLLIN};
  for (size_t i = 0; i < count; i++)
    polls[i + 1] = (struct pollfd){.fd = served[i].fd, .events = POLLIN};
  uint64_t now_ms = clock_monotonic_ms();
  cr_assert_lt(now_ms, until_ms, "nothing came in time");
  cr_assert_geq(poll(polls, count + 1, (int)(until_ms - now_ms)), 0);
  if (polls[0].revents)
    channel_serve();
  /* From the end, so that a removed one is replaced by one that was looked at. */
  for (size_t i = count; i-- > 0;)
    if (polls[i + 1].revents && !socket_serve(&served[i])) {
      close(served[i].fd);
      served[i] = served[--served_count];
    }
}

struct msg_lookup_answer bench_answer(uint64_t id)
{
  for (uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS;;) {
    for (size_t i = 0; i < answer_count; i++)
      if (answers[i].lookup == id) {
        struct msg_lookup_answer answer = answers[i];
        answers[i] = answers[--answer_count];
        return answer;
      }
    serve(until_ms);
  }
}

void bench_await_questions(unsigned count)
{
  for (uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS; bench_questions < count;)
    serve(until_ms);
}

void bench_squeeze(void)
{
  int least = 1;
  cr_assert_eq(setsockopt(child_end, SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
}

struct msg_lookup_answer bench_resolve(const char *name)
{
  uint64_t id = UINT64_C(1) << 32 | ++last_lookup;
  bench_lookup(id, name);
  return bench_answer(id);
}

void bench_reply(const struct bench_question *question, const struct packet_bytes *packet)
{
  unsigned char prefix[2] = {(unsigned char)(packet->length >> 8), (unsigned char)packet->length};
  if (question->tcp)
    cr_assert_eq(write(question->fd, prefix, sizeof prefix), 2);
  /* The resolver may have given the question up. */
  (void)!write(question->fd, packet->bytes, packet->length);
}

bool bench_reply_all(const struct bench_question *question, const struct packet_bytes *packet)
{
  struct pollfd writable = {.fd = question->fd, .events = POLLOUT};
  while (write(question->fd, packet->bytes, packet->length) < 0) {
    if (errno != EAGAIN)
      return false;
    cr_assert_eq(poll(&writable, 1, PATIENCE_MS), 1);
  }
  return true;
}

void bench_await_end(void)
{
  struct pollfd ended = {.fd = channel};
  cr_assert_eq(poll(&ended, 1, PATIENCE_MS), 1);
}
