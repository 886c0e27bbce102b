/* Opaque bytes both ways, from the 200 to the end: half-open either way, errors and resets passed on. */
#pragma once

#include "child/worker/session.h"

/* Writes the 200 (if the client is still there), sends the captured bytes on and relays. */
void tunnel_start(struct session *session);

void tunnel_client_ready(struct session *session, short what);
void tunnel_upstream_ready(struct session *session, short what);

/* Idle, or time to look whether a side that is not watched was reset. */
void tunnel_expired(struct session *session);
