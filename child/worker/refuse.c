#include "child/worker/refuse.h"

#include "child/worker/linger.h"
#include "child/worker/outbox.h"
#include "child/worker/relay.h"
#include "shared/log.h"

void refuse_answer(struct session *session, const struct answer *answer)
{
  relay_release(session->worker, &session->up);
  if (answer_client(session, answer))
    linger_start(session);
}

static bool record(struct session *session)
{
  struct msg_worker_refused refused = {.type = MSG_WORKER_REFUSED, .reason = session->reason};
  return outbox_send_descriptor(session->worker->outbox, &refused, session->client.fd) == 0;
}

static void answer_own(struct session *session)
{
  refuse_answer(session, &(struct answer){.reason = session->reason, .why = session->why});
}

void refuse_by_worker(struct session *session, enum reason reason, const char *why)
{
  struct worker *worker = session->worker;
  session->reason = (uint8_t)reason;
  session->why = why;
  if (record(session)) {
    answer_own(session);
    return;
  }
  session_set_state(session, SESSION_RECORDING);
  session_watch(session, &session->client, 0);
  deadline_set(worker->deadlines, &session->deadline, DEADLINE_ANSWER, worker_now_ms(worker));
}

void refuse_resume(struct worker *worker)
{
  struct session *session;
  while ((session = worker->recording.first) && !outbox_blocked(worker->outbox) && record(session))
    answer_own(session);
}

void refuse_expired(struct session *session)
{
  log_warning("a refusal could not be recorded in time; the client gets no answer");
  session_end(session, ENDING_FINISHED);
}
