/* Saying no to a client: the record first, then the answer, then a gentle close. */
#pragma once

#include "child/worker/answer.h"

/* A refusal of the worker's own, without asking. The parent gets the record with the client's descriptor; when the
   channel is full, the client waits for its answer. `why` is a literal or NULL. */
void refuse_by_worker(struct session *session, enum reason reason, const char *why);

/* A refusal that the parent knows of: only the answer is left to give. */
void refuse_answer(struct session *session, const struct answer *answer);

/* The channel takes messages again: records and answers those who wait. */
void refuse_resume(struct worker *worker);

/* The record could not be made in time: no record, no bytes. */
void refuse_expired(struct session *session);
