#include "child/worker/egress_connect.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "child/worker/ask.h"
#include "child/worker/egress_request.h"
#include "child/worker/refuse.h"
#include "child/worker/relay.h"
#include "child/worker/tunnel.h"
#include "shared/log.h"

/* True: the head may not be read on now, and the session waits. */
static bool must_wait(struct session *session)
{
  const struct worker *worker = session->worker;
  if (!ask_possible(worker))
    session_set_state(session, SESSION_WAITING);
  else if (session->up.rest && worker_is_tight(worker))
    session_set_state(session, SESSION_STARVED);
  else
    return false;
  session_watch(session, &session->client, 0);
  return true;
}

static void gone(struct session *session, enum counter counter, const char *when)
{
  log_debug("the client is gone before its %s", when);
  counter_add(session->worker->counters, counter, 1);
  session_end(session, ENDING_CLIENT_GONE);
}

static void capture_exceeded(struct session *session)
{
  log_warning("CONNECT client exceeded pre-establishment capture cap; destroying");
  counter_add(session->worker->counters, COUNTER_CAPTURE_EXCEEDED, 1);
  session_end(session, ENDING_CAPTURE_CAP);
}

/* What followed the head in the same reads is the first of the captured bytes. */
static int keep_early_bytes(struct session *session, const char *early, size_t length, size_t consumed)
{
  struct worker *worker = session->worker;
  if (length == 0)
    held_free(&session->up.rest, &worker->held_bytes);
  else if (session->up.rest)
    session->up.rest->start = (uint32_t)consumed;
  else
    return held_append(&session->up.rest, &worker->held_bytes, early, length);
  return 0;
}

static void take_request(struct session *session, const struct http_head *head, const char *bytes, size_t length,
                         size_t consumed)
{
  static const char connect[] = "CONNECT";
  struct worker *worker = session->worker;
  struct egress_request request;
  const char *why = NULL;
  session->is_connect =
    head->method.length == sizeof connect - 1 && memcmp(head->method.bytes, connect, sizeof connect - 1) == 0;
  enum reason reason = egress_request_parse(head, &request, &why);
  if (reason != REASON_NONE) {
    refuse_by_worker(session, reason, why);
    return;
  }
  if (length - consumed > CAPTURE_BYTES_MAX) {
    capture_exceeded(session);
    return;
  }
  if (keep_early_bytes(session, bytes + consumed, length - consumed, consumed) < 0) {
    session_end(session, ENDING_ERROR);
    return;
  }
  session_set_state(session, SESSION_ASKING);
  ask_egress(session, &request.host, request.port);
  deadline_set(worker->deadlines, &session->deadline, DEADLINE_ANSWER, worker_now_ms(worker));
  session_watch(session, &session->client, EV_READ);
}

/* `bytes` is all of the head that has come, in the worker's buffer or in session->up.rest. */
static void parse_head(struct session *session, const char *bytes, size_t length)
{
  static struct http_head head; /* four kilobytes that need no clearing for each call; nothing stays in it */
  const char *why = NULL;
  size_t consumed = 0;
  switch (http_head_parse(&session->scan, bytes, length, &head, &consumed, &why)) {
  case HTTP_HEAD_DONE:
    take_request(session, &head, bytes, length, consumed);
    break;
  case HTTP_HEAD_BAD:
    refuse_by_worker(session, REASON_BAD_REQUEST, why);
    break;
  case HTTP_HEAD_TOO_LARGE:
    refuse_by_worker(session, REASON_HEAD_TOO_LARGE, why);
    break;
  case HTTP_HEAD_MORE:
    if (!session->up.rest && held_append(&session->up.rest, &session->worker->held_bytes, bytes, length) < 0)
      session_end(session, ENDING_ERROR);
    else
      session_watch(session, &session->client, EV_READ);
    break;
  }
}

void egress_connect_read(struct session *session, short what)
{
  (void)what;
  struct worker *worker = session->worker;
  if (must_wait(session))
    return;
  size_t size = worker_is_tight(worker) ? HEAD_TIGHT_READ_BYTES : sizeof worker->buffer;
  ssize_t length = read(session->client.fd, worker->buffer, size);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
    session_watch(session, &session->client, EV_READ);
    return;
  }
  if (length <= 0) {
    gone(session, COUNTER_GONE_BEFORE_REQUEST, "request");
    return;
  }
  if (!session->up.rest) {
    parse_head(session, worker->buffer, (size_t)length);
    return;
  }
  if (held_append(&session->up.rest, &worker->held_bytes, worker->buffer, (size_t)length) < 0) {
    session_end(session, ENDING_ERROR);
    return;
  }
  parse_head(session, session->up.rest->bytes, session->up.rest->end);
}

void egress_connect_capture(struct session *session, short what)
{
  (void)what;
  struct worker *worker = session->worker;
  size_t captured = held_length(session->up.rest);
  size_t size = CAPTURE_BYTES_MAX - captured + 1; /* the byte too many is read, so that it is seen */
  if (size > sizeof worker->buffer)
    size = sizeof worker->buffer;
  ssize_t length = read(session->client.fd, worker->buffer, size);
  if (length < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (length <= 0) {
    gone(session, COUNTER_GONE_BEFORE_VERDICT, "verdict");
    return;
  }
  if (captured + (size_t)length > CAPTURE_BYTES_MAX) {
    capture_exceeded(session);
    return;
  }
  if (held_append(&session->up.rest, &worker->held_bytes, worker->buffer, (size_t)length) < 0)
    session_end(session, ENDING_ERROR);
}

void egress_connect_granted(struct session *session, uint64_t id, int upstream)
{
  session->id = id;
  session->upstream.fd = upstream;
  tunnel_start(session);
}

void egress_connect_refused(struct session *session, const struct msg_refusal *refusal, const char *target)
{
  enum reason reason = refusal->reason;
  if (reason == REASON_CLIENT_GONE) {
    gone(session, COUNTER_GONE_BEFORE_VERDICT, "verdict, as the parent saw");
    return;
  }
  /* A refusal without a reason must never be written as the 200 that this number stands for. */
  if (reason == REASON_NONE || reason >= REASON_COUNT)
    reason = REASON_INTERNAL;
  refuse_answer(session, &(struct answer){.reason = reason, .target = target, .refusal = refusal});
}

void egress_connect_lost(struct session *session, uint64_t id, const char *target)
{
  session->id = id;
  session_report_closed(session, ENDING_LOST);
  refuse_answer(session, &(struct answer){.reason = REASON_INTERNAL, .target = target});
}

void egress_connect_head_expired(struct session *session)
{
  if (session->state == SESSION_WAITING || session->state == SESSION_STARVED)
    refuse_by_worker(session, REASON_REQUEST_TIMEOUT, "The gateway was too busy to read the request in time.");
  else if (session->up.rest)
    refuse_by_worker(session, REASON_REQUEST_TIMEOUT, "The request head was not complete in time.");
  else
    session_end(session, ENDING_FINISHED); /* in total silence the protocol is not known */
}

void egress_connect_answer_expired(struct session *session)
{
  char target[HOST_TEXT_SIZE + 8];
  ask_target(session, target, sizeof target);
  ask_abandon(session);
  refuse_answer(session, &(struct answer){.reason = REASON_CONNECTION_TIMEOUT, .target = target});
}

void egress_connect_resume(struct worker *worker)
{
  struct session *session;
  while ((session = worker->waiting.first) && ask_possible(worker)) {
    session_set_state(session, SESSION_HEAD);
    egress_connect_read(session, 0);
  }
  while ((session = worker->starved.first) && !worker_is_tight(worker)) {
    session_set_state(session, SESSION_HEAD);
    egress_connect_read(session, 0);
  }
}
