#include "child/worker/linger.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

void linger_start(struct session *session)
{
  struct worker *worker = session->worker;
  if (shutdown(session->client.fd, SHUT_WR) < 0) {
    session_end(session, ENDING_FINISHED);
    return;
  }
  session_set_state(session, SESSION_LINGER);
  deadline_set(worker->deadlines, &session->deadline, DEADLINE_LINGER, worker_now_ms(worker));
  session_watch(session, &session->client, EV_READ);
}

void linger_read(struct session *session, short what)
{
  (void)what;
  struct worker *worker = session->worker;
  ssize_t dropped = read(session->client.fd, worker->buffer, sizeof worker->buffer);
  if (dropped < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (dropped > 0)
    session->lingered_bytes += (uint32_t)dropped;
  if (dropped <= 0 || session->lingered_bytes >= LINGER_BYTES_MAX)
    session_end(session, ENDING_FINISHED);
}

void linger_expired(struct session *session)
{
  session_end(session, ENDING_FINISHED);
}
