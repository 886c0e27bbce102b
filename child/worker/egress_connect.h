/* From a request head to the parent's answer: read, refuse or ask, capture meanwhile. */
#pragma once

#include "child/worker/session.h"

/* The client can be read (or was accepted this moment: its head is usually there already). */
void egress_connect_read(struct session *session, short what);

/* The client can be read while the parent decides: its bytes are kept for the upstream, its end means that it has given
   up, and one byte too many destroys it. */
void egress_connect_capture(struct session *session, short what);

/* The parent's answers. `target` is "host:port". granted takes over the descriptor. */
void egress_connect_granted(struct session *session, uint64_t id, int upstream);
void egress_connect_refused(struct session *session, const struct msg_refusal *refusal, const char *target);
void egress_connect_lost(struct session *session, uint64_t id, const char *target);

/* Deadlines. */
void egress_connect_head_expired(struct session *session);
void egress_connect_answer_expired(struct session *session);

/* Credit, channel or memory may be there again: reads the heads that wait, oldest first. */
void egress_connect_resume(struct worker *worker);
