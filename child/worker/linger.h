/* The close after a refusal: our side is shut down, and what the client still sends is read and dropped for a bounded
   time, so that a reset does not destroy the answer on its way. RFC 9112 section 9.6. */
#pragma once

#include "child/worker/session.h"

void linger_start(struct session *session);
void linger_read(struct session *session, short what);
void linger_expired(struct session *session);
