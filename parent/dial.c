#include "parent/dial.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>

#include "parent/socket_options.h"
#include "shared/descriptors.h"
#include "shared/limits.h"

struct dialer {
  struct event_base *base;
  const struct config_limits *limits;
  size_t attempts_max;
  size_t attempts;
  const struct timeval *total_timeout; /* common timeouts: constant-time queues */
  const struct timeval *attempt_delay;
};

struct attempt {
  struct dial *dial;
  int fd; /* -1: not tried, or failed */
  struct event connected;
};

struct dial {
  struct dialer *dialer;
  dial_done *done;
  void *context;
  struct endpoint endpoints[DIAL_ADDRESSES_MAX];
  struct attempt attempts[DIAL_ADDRESSES_MAX];
  size_t count;
  size_t next;    /* first endpoint that was not tried */
  size_t pending; /* attempts in flight */
  size_t last;    /* endpoint of the failure that is told */
  enum reason reason;
  struct event deadline;
  struct event next_attempt;
  bool timers; /* made: a dial that ends at once needs none */
};

struct dialer *dialer_new(struct event_base *base, const struct config_limits *limits, size_t attempts_max)
{
  struct dialer *dialer = calloc(1, sizeof *dialer);
  if (!dialer)
    return NULL;
  struct timeval total = {.tv_sec = limits->dial_timeout_ms / 1000, .tv_usec = (limits->dial_timeout_ms % 1000) * 1000};
  struct timeval delay = {.tv_usec = DIAL_ATTEMPT_DELAY_MS * 1000};
  *dialer = (struct dialer){
    .base = base,
    .limits = limits,
    .attempts_max = attempts_max,
    .total_timeout = event_base_init_common_timeout(base, &total),
    .attempt_delay = event_base_init_common_timeout(base, &delay),
  };
  return dialer;
}

void dialer_free(struct dialer *dialer)
{
  free(dialer);
}

static enum reason reason_of(int error)
{
  static const struct {
    int error;
    enum reason reason;
  } rows[] = {
    {ECONNREFUSED, REASON_CONNECTION_REFUSED},
    {ENETUNREACH, REASON_UNREACHABLE},
    {EHOSTUNREACH, REASON_UNREACHABLE},
    {ENETDOWN, REASON_UNREACHABLE},
    {EADDRNOTAVAIL, REASON_UNREACHABLE},
    {EACCES, REASON_UNREACHABLE},
    {EPERM, REASON_UNREACHABLE},
    {ETIMEDOUT, REASON_CONNECTION_TIMEOUT},
    {EMFILE, REASON_LIMIT_REACHED},
    {ENFILE, REASON_LIMIT_REACHED},
    {ENOBUFS, REASON_LIMIT_REACHED},
    {ENOMEM, REASON_LIMIT_REACHED},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].error == error)
      return rows[i].reason;
  return REASON_CONNECTION_FAILED;
}

/* IPv6 first, then in turns (RFC 8305 section 4, with one address of the first family). */
static void interleave(const struct endpoint *given, size_t count, struct dial *dial)
{
  size_t next[2] = {0, 0};
  static const uint8_t families[2] = {6, 4};
  unsigned turn = 0;
  while (dial->count < DIAL_ADDRESSES_MAX && (next[0] < count || next[1] < count)) {
    size_t *i = &next[turn];
    while (*i < count && given[*i].address.family != families[turn])
      (*i)++;
    if (*i < count)
      dial->endpoints[dial->count++] = given[(*i)++];
    turn = !turn;
  }
}

static void close_attempt(struct attempt *attempt)
{
  if (attempt->fd < 0)
    return;
  if (event_initialized(&attempt->connected))
    event_del(&attempt->connected);
  descriptor_close(&attempt->fd);
  attempt->dial->dialer->attempts--;
  attempt->dial->pending--;
}

void dial_cancel(struct dial *dial)
{
  for (size_t i = 0; i < dial->next; i++)
    close_attempt(&dial->attempts[i]);
  if (dial->timers) {
    event_del(&dial->deadline);
    event_del(&dial->next_attempt);
  }
  free(dial);
}

static void finish(struct dial *dial, enum reason reason, int fd, const struct endpoint *endpoint)
{
  struct endpoint told = *endpoint;
  dial_done *done = dial->done;
  void *context = dial->context;
  dial_cancel(dial);
  done(context, reason, fd, &told);
}

static void won(struct attempt *attempt)
{
  struct dial *dial = attempt->dial;
  if (event_initialized(&attempt->connected))
    event_del(&attempt->connected);
  int fd = steal_fd(&attempt->fd);
  dial->dialer->attempts--;
  dial->pending--;
  finish(dial, REASON_NONE, fd, &dial->endpoints[attempt - dial->attempts]);
}

/* What is told when all fail: a refusal is the most certain of the answers, else the last one counts. */
static void note_failure(struct dial *dial, size_t index, int error)
{
  if (dial->reason == REASON_CONNECTION_REFUSED)
    return;
  dial->reason = reason_of(error);
  dial->last = index;
}

static bool try_next(struct dial *dial);

/* After a failure: the next address at once, or the end. False: the dial is over and freed. */
static bool go_on(struct dial *dial)
{
  while (dial->pending == 0 || dial->next < dial->count) {
    if (dial->next == dial->count) {
      finish(dial, dial->reason, -1, &dial->endpoints[dial->last]);
      return false;
    }
    size_t pending_before = dial->pending;
    if (!try_next(dial))
      return false;
    if (dial->pending > pending_before)
      return true;
  }
  return true;
}

static void attempt_event(evutil_socket_t fd, short what, void *argument)
{
  (void)what;
  struct attempt *attempt = argument;
  struct dial *dial = attempt->dial;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
    error = errno;
  if (error == 0) {
    won(attempt);
    return;
  }
  note_failure(dial, (size_t)(attempt - dial->attempts), error);
  close_attempt(attempt);
  go_on(dial);
}

static int open_attempt(struct dial *dial, const struct endpoint *endpoint)
{
  struct dialer *dialer = dial->dialer;
  if (dialer->attempts >= dialer->attempts_max)
    return -EMFILE;
  int family = endpoint->address.family == 6 ? AF_INET6 : AF_INET;
  cleanup_fd int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd < 0)
    return -errno;
  socket_options_tcp(fd, dialer->limits);
  struct sockaddr_storage storage;
  socklen_t length = endpoint_to_sockaddr(endpoint, &storage);
  if (connect(fd, (struct sockaddr *)&storage, length) < 0 && errno != EINPROGRESS)
    return -errno;
  return steal_fd(&fd);
}

/* Over loopback the handshake is over when connect() returns, though it says EINPROGRESS: asking once more saves the
   event loop a round. 1: connected, 0: in progress, -errno: failed. */
static int connected_already(int fd, const struct endpoint *endpoint)
{
  struct sockaddr_storage storage;
  socklen_t length = endpoint_to_sockaddr(endpoint, &storage);
  if (connect(fd, (struct sockaddr *)&storage, length) == 0 || errno == EISCONN)
    return 1;
  return errno == EALREADY || errno == EINPROGRESS ? 0 : -errno;
}

/* Tries the next address. False: the dial is over and freed (it connected). */
static bool try_next(struct dial *dial)
{
  size_t index = dial->next++;
  struct attempt *attempt = &dial->attempts[index];
  const struct endpoint *endpoint = &dial->endpoints[index];
  int fd = open_attempt(dial, endpoint);
  int state = fd < 0 ? fd : connected_already(fd, endpoint);
  if (state < 0) {
    note_failure(dial, index, -state);
    descriptor_close(&fd);
    return true;
  }
  attempt->dial = dial;
  attempt->fd = fd;
  dial->dialer->attempts++;
  dial->pending++;
  if (state == 1) {
    won(attempt);
    return false;
  }
  event_assign(&attempt->connected, dial->dialer->base, fd, EV_WRITE, attempt_event, attempt);
  event_add(&attempt->connected, NULL);
  return true;
}

static void deadline_passed(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct dial *dial = argument;
  finish(dial, REASON_CONNECTION_TIMEOUT, -1, &dial->endpoints[dial->next - 1]);
}

static void delay_passed(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct dial *dial = argument;
  if (dial->next == dial->count || !try_next(dial) || (dial->pending == 0 && !go_on(dial)))
    return;
  if (dial->next < dial->count)
    event_add(&dial->next_attempt, dial->dialer->attempt_delay);
}

static void start_timers(struct dial *dial)
{
  struct dialer *dialer = dial->dialer;
  evtimer_assign(&dial->deadline, dialer->base, deadline_passed, dial);
  evtimer_assign(&dial->next_attempt, dialer->base, delay_passed, dial);
  dial->timers = true;
  event_add(&dial->deadline, dialer->total_timeout);
  if (dial->next < dial->count)
    event_add(&dial->next_attempt, dialer->attempt_delay);
}

void dial_start(struct dialer *dialer, const struct endpoint *endpoints, size_t count, dial_done *done, void *context,
                struct dial **ret)
{
  *ret = NULL;
  struct dial *dial = calloc(1, sizeof *dial);
  if (!dial) {
    done(context, REASON_LIMIT_REACHED, -1, &endpoints[0]);
    return;
  }
  dial->dialer = dialer;
  dial->done = done;
  dial->context = context;
  for (size_t i = 0; i < DIAL_ADDRESSES_MAX; i++)
    dial->attempts[i].fd = -1;
  interleave(endpoints, count, dial);
  if (!try_next(dial) || (dial->pending == 0 && !go_on(dial)))
    return;
  start_timers(dial);
  *ret = dial;
}
