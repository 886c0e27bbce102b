#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/reasons.h"
#include "tests/hostile/hostile.h"

#define HUGE_BYTES 65536
#define FLOOD_ASKS 100000
#define FIRST_ASK 1000

static struct hostile_things things;

void attacks_prepare(void)
{
  int pipes[2], pair[2];
  if (pipe2(pipes, O_CLOEXEC) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
    exit(EXIT_FAILURE);
  things = (struct hostile_things){.pipe = pipes[0],
                                   .pair = pair[0],
                                   .udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
                                   .tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
}

static struct msg_ask_egress ask_of(const struct order *order)
{
  static uint64_t next = FIRST_ASK;
  struct msg_ask_egress ask = {.type = MSG_ASK_EGRESS, .ask = next++, .port = (uint16_t)strtoul(order->port, NULL, 10)};
  memccpy(ask.host, order->host, '\0', sizeof ask.host);
  return ask;
}

static void send_ask(const struct msg_ask_egress *ask, int descriptor)
{
  send_raw(ask, sizeof *ask, &descriptor, 1);
}

static void send_plain(const void *message, size_t size)
{
  send_raw(message, size, NULL, 0);
}

/* What a worker may do: whether it is refused is the parent's business. */
static void ask(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  send_ask(&ask, order->client);
}

static void short_message(const struct order *order)
{
  (void)order;
  send_plain("\2\0\0", 3);
}

static void size_below(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  send_raw(&ask, sizeof ask - 1, &order->client, 1);
}

static void size_above(const struct order *order)
{
  struct {
    struct msg_ask_egress ask;
    char more;
  } longer = {.ask = ask_of(order)};
  send_raw(&longer, sizeof longer.ask + 1, &order->client, 1);
}

static void huge_message(const struct order *order)
{
  static char huge[HUGE_BYTES];
  struct msg_ask_egress ask = ask_of(order);
  memcpy(huge, &ask, sizeof ask);
  send_raw(huge, sizeof huge, &order->client, 1);
}

static void empty_message(const struct order *order)
{
  (void)order;
  send_plain("", 0);
}

static void send_type(uint32_t type)
{
  union message message = {.type = type};
  size_t size = message_size(type);
  send_plain(&message, size > 0 ? size : sizeof(struct msg_ready));
}

static void unknown_type(const struct order *order)
{
  (void)order;
  send_type(MSG_TYPE_END - 1);
}

static void type_beyond_the_table(const struct order *order)
{
  (void)order;
  send_type(UINT32_MAX);
}

static void other_direction(const struct order *order)
{
  (void)order;
  send_type(MSG_DRAIN);
}

static void other_role(const struct order *order)
{
  (void)order;
  send_type(MSG_WANT_SOCKET);
}

static void ready_again(const struct order *order)
{
  (void)order;
  send_type(MSG_READY);
}

static void host_not_terminated(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  memset(ask.host, 'a', sizeof ask.host);
  send_ask(&ask, order->client);
}

static void host_with_nul(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  memccpy(ask.host + strlen(ask.host) + 1, ".evil.test", '\0', sizeof ".evil.test");
  send_ask(&ask, order->client);
}

static void host_with_garbage_at_the_end(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  ask.host[sizeof ask.host - 1] = 'x';
  send_ask(&ask, order->client);
}

static void padding(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  ask.zero = 1;
  send_ask(&ask, order->client);
}

static void ask_without_id(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  ask.ask = 0;
  send_ask(&ask, order->client);
}

static void ask_twice(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  send_ask(&ask, order->client);
  send_ask(&ask, order->client);
}

static void no_descriptor(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  send_plain(&ask, sizeof ask);
}

static void two_descriptors(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  int both[] = {order->client, order->client};
  send_raw(&ask, sizeof ask, both, 2);
}

static void many_descriptors(const struct order *order)
{
  struct msg_ask_egress ask = ask_of(order);
  int many[200];
  for (size_t i = 0; i < sizeof many / sizeof *many; i++)
    many[i] = order->client;
  send_raw(&ask, sizeof ask, many, sizeof many / sizeof *many);
}

static void descriptor_where_none_belongs(const struct order *order)
{
  struct msg_abandon abandon = {.type = MSG_ABANDON, .ask = FIRST_ASK};
  send_raw(&abandon, sizeof abandon, &order->client, 1);
}

static void descriptor_is(const struct order *order, int descriptor)
{
  struct msg_ask_egress ask = ask_of(order);
  send_ask(&ask, descriptor);
}

static void descriptor_is_a_pipe(const struct order *order)
{
  descriptor_is(order, things.pipe);
}

static void descriptor_is_a_socketpair(const struct order *order)
{
  descriptor_is(order, things.pair);
}

static void descriptor_is_udp(const struct order *order)
{
  descriptor_is(order, things.udp);
}

static void descriptor_is_not_connected(const struct order *order)
{
  descriptor_is(order, things.tcp);
}

static void descriptor_is_the_listener(const struct order *order)
{
  descriptor_is(order, CHILD_LISTENER_FD_FIRST);
}

static void descriptor_is_the_channel(const struct order *order)
{
  descriptor_is(order, CHILD_CHANNEL_FD);
}

static void descriptor_is_the_counters(const struct order *order)
{
  descriptor_is(order, CHILD_COUNTERS_FD);
}

/* The one that a real attacker has: a connection that was granted before. */
static void descriptor_is_an_upstream(const struct order *order)
{
  union message answer;
  int upstream;
  ask(order);
  wait_answer(&answer, &upstream);
  descriptor_is(order, upstream);
}

static void refused_with_upstream(const struct order *order)
{
  union message answer;
  int upstream;
  ask(order);
  wait_answer(&answer, &upstream);
  struct msg_worker_refused refused = {.type = MSG_WORKER_REFUSED, .reason = REASON_BAD_REQUEST};
  send_raw(&refused, sizeof refused, &upstream, 1);
}

static void refused_for_a_reason_of_the_parent(const struct order *order)
{
  struct msg_worker_refused refused = {.type = MSG_WORKER_REFUSED, .reason = REASON_DENIED};
  send_raw(&refused, sizeof refused, &order->client, 1);
}

static void refused_for_no_reason(const struct order *order)
{
  struct msg_worker_refused refused = {.type = MSG_WORKER_REFUSED, .reason = UINT16_MAX};
  send_raw(&refused, sizeof refused, &order->client, 1);
}

static void close_session(uint64_t session, uint16_t ending)
{
  struct msg_session_closed closed = {
    .type = MSG_SESSION_CLOSED, .ending = ending, .session = session, .bytes_up = UINT64_MAX, .bytes_down = 1};
  send_plain(&closed, sizeof closed);
}

/* The session in hexadecimal as the first argument: one that another worker serves, or one that nobody does. */
static void close_that_session(const struct order *order)
{
  close_session(strtoull(order->host, NULL, 16), ENDING_FINISHED);
}

static uint64_t granted(const struct order *order)
{
  union message answer;
  int upstream;
  ask(order);
  wait_answer(&answer, &upstream);
  return answer.type == MSG_GRANT ? answer.GRANT.session : 0;
}

static void close_twice(const struct order *order)
{
  uint64_t session = granted(order);
  close_session(session, ENDING_FINISHED);
  close_session(session, ENDING_FINISHED);
}

static void ending_of_the_parent(const struct order *order)
{
  close_session(granted(order), ENDING_WORKER_DIED);
}

static void ending_beyond_the_table(const struct order *order)
{
  close_session(granted(order), ENDING_COUNT);
}

static void flood_beyond_the_credit(const struct order *order)
{
  for (int i = 0; i < WORKER_CREDIT + 1; i++)
    ask(order);
}

/* Answers are not read: they pile up at the parent, which must not pile them up. */
static void flood_unread(const struct order *order)
{
  for (int i = 0; i < FLOOD_ASKS; i++)
    ask(order);
}

static void flood_abandons(const struct order *order)
{
  (void)order;
  for (uint64_t i = 0; i < FLOOD_ASKS; i++) {
    struct msg_abandon abandon = {.type = MSG_ABANDON, .ask = i + 1};
    send_plain(&abandon, sizeof abandon);
  }
}

const struct attack attacks[] = {
  {"ask", ask},
  {"short-message", short_message},
  {"size-below", size_below},
  {"size-above", size_above},
  {"huge-message", huge_message},
  {"empty-message", empty_message},
  {"unknown-type", unknown_type},
  {"type-beyond-the-table", type_beyond_the_table},
  {"other-direction", other_direction},
  {"other-role", other_role},
  {"ready-again", ready_again},
  {"host-not-terminated", host_not_terminated},
  {"host-with-nul", host_with_nul},
  {"host-with-garbage-at-the-end", host_with_garbage_at_the_end},
  {"padding", padding},
  {"ask-without-id", ask_without_id},
  {"ask-twice", ask_twice},
  {"no-descriptor", no_descriptor},
  {"two-descriptors", two_descriptors},
  {"many-descriptors", many_descriptors},
  {"descriptor-where-none-belongs", descriptor_where_none_belongs},
  {"descriptor-is-a-pipe", descriptor_is_a_pipe},
  {"descriptor-is-a-socketpair", descriptor_is_a_socketpair},
  {"descriptor-is-udp", descriptor_is_udp},
  {"descriptor-is-not-connected", descriptor_is_not_connected},
  {"descriptor-is-the-listener", descriptor_is_the_listener},
  {"descriptor-is-the-channel", descriptor_is_the_channel},
  {"descriptor-is-the-counters", descriptor_is_the_counters},
  {"descriptor-is-an-upstream", descriptor_is_an_upstream},
  {"refused-with-upstream", refused_with_upstream},
  {"refused-for-a-reason-of-the-parent", refused_for_a_reason_of_the_parent},
  {"refused-for-no-reason", refused_for_no_reason},
  {"close-that-session", close_that_session},
  {"close-twice", close_twice},
  {"ending-of-the-parent", ending_of_the_parent},
  {"ending-beyond-the-table", ending_beyond_the_table},
  {"flood-beyond-the-credit", flood_beyond_the_credit},
  {"flood-unread", flood_unread},
  {"flood-abandons", flood_abandons},
  {NULL, NULL},
};
