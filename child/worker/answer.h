/* The one function that writes a status line to a client. */
#pragma once

#include "child/worker/answer_text.h"
#include "child/worker/session.h"

/* Looks first whether the client is still there: no error pending, not hung up or reset, and, for CONNECT, no end of
   stream, which before establishment means that it has given up. Then writes the answer. True when it is written. When
   the client is gone nothing is written: it is counted, and the session has ended when this returns false. */
bool answer_client(struct session *session, const struct answer *answer);
