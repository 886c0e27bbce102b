#include <criterion/criterion.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "parent/dial.h"

static struct event_base *base;
static struct config_limits limits = {.dial_timeout_ms = 2000, .keepalive_idle_ms = 60000, .dead_peer_ms = 120000};

struct outcome {
  int calls;
  enum reason reason;
  int fd;
  struct endpoint endpoint;
};

static void done(void *context, enum reason reason, int fd, const struct endpoint *endpoint)
{
  struct outcome *outcome = context;
  *outcome = (struct outcome){outcome->calls + 1, reason, fd, *endpoint};
}

static struct endpoint loopback(const char *address, int listener)
{
  struct endpoint endpoint = {0};
  cr_assert_eq(address_parse(address, &endpoint.address), 0);
  struct sockaddr_storage storage;
  socklen_t length = sizeof storage;
  if (listener >= 0) {
    struct endpoint local;
    getsockname(listener, (struct sockaddr *)&storage, &length);
    endpoint_from_sockaddr((struct sockaddr *)&storage, &local);
    endpoint.port = local.port;
  }
  return endpoint;
}

/* A listener on 127.0.0.1 with a free port; `closed`: bound only, so that connecting is refused. */
static int listener_make(bool closed)
{
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
  if (!closed)
    cr_assert_eq(listen(fd, 0), 0);
  return fd;
}

/* A full accept queue drops further SYNs: connecting hangs. */
static void fill_queue(int listener, int fillers[4])
{
  struct sockaddr_storage storage;
  socklen_t length = sizeof storage;
  getsockname(listener, (struct sockaddr *)&storage, &length);
  for (int i = 0; i < 4; i++) {
    fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)!connect(fillers[i], (struct sockaddr *)&storage, length);
  }
}

static struct outcome dial_all(const struct endpoint *endpoints, size_t count, size_t attempts_max)
{
  base = event_base_new();
  struct dialer *dialer = dialer_new(base, &limits, attempts_max);
  struct outcome outcome = {.fd = -1};
  struct dial *dial;
  dial_start(dialer, endpoints, count, done, &outcome, &dial);
  while (outcome.calls == 0)
    cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
  event_base_dispatch(base);
  cr_expect_eq(outcome.calls, 1);
  dialer_free(dialer);
  event_base_free(base);
  return outcome;
}

Test(dial, connects)
{
  int listener = listener_make(false);
  struct endpoint endpoint = loopback("127.0.0.1", listener);
  struct outcome outcome = dial_all(&endpoint, 1, 10);
  cr_expect_eq(outcome.reason, REASON_NONE);
  cr_expect_geq(outcome.fd, 0);
  close(outcome.fd);
  close(listener);
}

Test(dial, a_refusal_is_told_and_the_next_address_is_tried_at_once)
{
  int closed = listener_make(true), listener = listener_make(false);
  struct endpoint endpoints[2] = {loopback("127.0.0.1", closed), loopback("127.0.0.1", listener)};
  struct outcome outcome = dial_all(endpoints, 1, 10);
  cr_expect_eq(outcome.reason, REASON_CONNECTION_REFUSED);
  cr_expect_eq(outcome.fd, -1);
  outcome = dial_all(endpoints, 2, 10);
  cr_expect_eq(outcome.reason, REASON_NONE);
  cr_expect_eq(outcome.endpoint.port, endpoints[1].port);
  close(outcome.fd);
  close(closed);
  close(listener);
}

Test(dial, a_hanging_address_does_not_hold_up_the_next)
{
  int hanging = listener_make(false), listener = listener_make(false), fillers[4];
  fill_queue(hanging, fillers);
  struct endpoint endpoints[2] = {loopback("127.0.0.1", hanging), loopback("127.0.0.1", listener)};
  struct outcome outcome = dial_all(endpoints, 2, 10);
  cr_expect_eq(outcome.reason, REASON_NONE);
  cr_expect_eq(outcome.endpoint.port, endpoints[1].port);
  close(outcome.fd);
  limits.dial_timeout_ms = 400;
  outcome = dial_all(endpoints, 1, 10);
  cr_expect_eq(outcome.reason, REASON_CONNECTION_TIMEOUT);
  for (int i = 0; i < 4; i++)
    close(fillers[i]);
  close(hanging);
  close(listener);
}

Test(dial, ipv6_goes_first_and_families_take_turns)
{
  int closed = listener_make(true);
  struct endpoint v4 = loopback("127.0.0.1", closed);
  int six = socket(AF_INET6, SOCK_STREAM, 0);
  struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  if (bind(six, (struct sockaddr *)&in6, sizeof in6) < 0)
    cr_skip("no IPv6 loopback here");
  listen(six, 4);
  struct endpoint endpoints[3] = {v4, v4, loopback("::1", six)};
  struct outcome outcome = dial_all(endpoints, 3, 10);
  cr_expect_eq(outcome.reason, REASON_NONE);
  cr_expect_eq(outcome.endpoint.address.family, 6);
  close(outcome.fd);
  close(six);
  close(closed);
}

Test(dial, sockets_in_flight_are_bounded)
{
  int listener = listener_make(false);
  struct endpoint endpoint = loopback("127.0.0.1", listener);
  struct outcome outcome = dial_all(&endpoint, 1, 0);
  cr_expect_eq(outcome.reason, REASON_LIMIT_REACHED);
  close(listener);
}

Test(dial, a_cancelled_dial_closes_its_sockets_and_is_silent)
{
  int hanging = listener_make(false), fillers[4];
  fill_queue(hanging, fillers);
  struct endpoint endpoint = loopback("127.0.0.1", hanging);
  base = event_base_new();
  struct dialer *dialer = dialer_new(base, &limits, 10);
  struct outcome outcome = {0};
  struct dial *dial;
  int lowest_free = dup(0);
  close(lowest_free);
  dial_start(dialer, &endpoint, 1, done, &outcome, &dial);
  cr_assert_not_null(dial);
  dial_cancel(dial);
  event_base_dispatch(base);
  cr_expect_eq(outcome.calls, 0);
  int now_free = dup(0);
  cr_expect_eq(now_free, lowest_free);
  close(now_free);
  dialer_free(dialer);
  event_base_free(base);
  for (int i = 0; i < 4; i++)
    close(fillers[i]);
  close(hanging);
}
