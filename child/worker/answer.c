#include "child/worker/answer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/log.h"

static enum counter gone_counter(int status)
{
  switch (status) {
  case 200:
    return COUNTER_GONE_BEFORE_200;
  case 403:
    return COUNTER_GONE_BEFORE_403;
  case 502:
  case 503:
  case 504:
    return COUNTER_GONE_BEFORE_502;
  default:
    return COUNTER_GONE_BEFORE_OTHER;
  }
}

static void gone(struct session *session, int status, const char *how)
{
  log_debug("the client is gone before its %d: %s", status, how);
  counter_add(session->worker->counters, gone_counter(status), 1);
  session_end(session, ENDING_CLIENT_GONE);
}

/* NULL when the client can be written to, else why not. */
static const char *writable_check(const struct session *session)
{
  struct pollfd client = {.fd = session->client.fd, .events = POLLOUT | POLLRDHUP};
  if (poll(&client, 1, 0) < 0)
    return strerror(errno);
  if (client.revents & POLLERR) {
    int error = 0;
    socklen_t size = sizeof error;
    (void)getsockopt(session->client.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error ? strerror(error) : "pending error";
  }
  if (client.revents & (POLLHUP | POLLNVAL))
    return "hung up";
  if (session->is_connect && client.revents & POLLRDHUP)
    return "end of stream before establishment";
  return NULL;
}

bool answer_client(struct session *session, const struct answer *answer)
{
  int status = reason_row(answer->reason)->status;
  const char *why_gone = writable_check(session);
  if (why_gone) {
    gone(session, status, why_gone);
    return false;
  }
  char text[ANSWER_BYTES_MAX];
  size_t length = answer_text(answer, text, sizeof text);
  ssize_t written = write(session->client.fd, text, length);
  if (written < 0) {
    gone(session, status, strerror(errno));
    return false;
  }
  /* The first bytes on a connection always fit its buffer, unless the kernel is out of memory. */
  if ((size_t)written < length) {
    log_warning("an answer could not be written whole");
    session_end(session, ENDING_ERROR);
    return false;
  }
  bool established = answer->reason == REASON_NONE;
  counter_add(session->worker->counters, established ? COUNTER_ANSWERED_200 : COUNTER_ANSWERED_REFUSAL, 1);
  return true;
}
