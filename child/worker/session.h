/* One client connection's life in the worker: its state, its descriptors, its one end. */
#pragma once

#include <event2/event_struct.h>

#include "child/worker/held.h"
#include "child/worker/http_head.h"
#include "child/worker/worker.h"
#include "shared/reasons.h"

enum session_state {
  SESSION_HEAD,      /* the request head is read */
  SESSION_WAITING,   /* bytes are there, but no credit to ask or no room in the channel */
  SESSION_STARVED,   /* bytes are there, but no memory to keep an incomplete head */
  SESSION_ASKING,    /* the parent decides, dials and records; the client's early bytes are captured */
  SESSION_RECORDING, /* refused by the worker; the record waits for room in the channel */
  SESSION_TUNNEL,    /* the 200 is out: bytes flow */
  SESSION_LINGER,    /* refused and told so; what the client still sends is dropped until it closes */
  SESSION_ENDED,
  SESSION_STATE_COUNT
};

struct side { /* one of the two connections; one event each, level-triggered */
  struct event event;
  int fd;         /* -1: none */
  short watching; /* EV_READ and EV_WRITE that are added now */
};

struct flow {        /* one direction of a tunnel */
  struct held *rest; /* what the sink did not take */
  struct pipe *pipe; /* lent while it holds bytes */
  uint64_t bytes;    /* that the sink took */
  uint8_t full_reads;
  bool waits;     /* nothing is held, but the sink must be writable before more is read: the budget is used up */
  bool ended;     /* the source is at its end of stream */
  bool passed_on; /* and the sink has been told */
};

struct session {
  struct deadline deadline; /* first: the deadline's address is the session's */
  struct worker *worker;
  struct side client;
  struct side upstream;
  struct flow up; /* client to upstream; before the tunnel, up.rest is the incomplete head, then the captured bytes */
  struct flow down;
  struct http_head_scan scan;
  uint64_t ask; /* in flight; 0: none */
  uint64_t id;  /* the parent's, from its grant; 0: nothing is open in its books */
  uint64_t active_ms;
  const char *why;             /* RECORDING: the literal for the answer */
  struct session *next_queued; /* in the worker's waiting or recording queue, or among the ended */
  struct session *previous;    /* all sessions */
  struct session *next;
  uint32_t lingered_bytes;
  uint8_t state;    /* enum session_state; set by session_set_state only */
  uint8_t reason;   /* RECORDING: enum reason */
  uint8_t listener; /* index for listeners_session_ended */
  bool is_connect;  /* the method is known and is CONNECT */
};

/* A session for a client that was accepted: takes over the descriptor, starts the head deadline, watches nothing yet.
   NULL when memory ran out (the descriptor is closed). */
struct session *session_new(struct worker *worker, int client, uint8_t listener);

/* The one setter; it also keeps the worker's queues and gauges. A transition that the table does not have is our own
   mistake: it is logged and ends the worker. */
void session_set_state(struct session *session, enum session_state state);

/* The one end of every session: gives up its ask, tells the parent when a grant is open, closes (by a reset where the
   ending is not clean), counts and frees. The memory stays until the end of the turn, with state SESSION_ENDED. */
void session_end(struct session *session, enum ending ending);

/* Tells the parent that the grant's session has ended; session_end does it for those that still have an id. */
void session_report_closed(struct session *session, enum ending ending);

/* Makes the side's event be for exactly `events` (EV_READ, EV_WRITE, both or 0). No system call when it already is.
   A failure (memory) ends the session. */
void session_watch(struct session *session, struct side *side, short events);

/* Frees the memory of sessions that ended in this turn. */
void sessions_free_ended(struct worker *worker);

/* The deadline of a session has come. */
void session_expired(struct deadline *deadline, uint64_t now_ms, void *context);
