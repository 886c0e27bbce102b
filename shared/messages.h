/* Every message between the parent and its children: one table, fixed sizes. Trust: neither side believes the other;
   `message_check` holds for both, and the parent kills a child whose message fails it.

   A message is one packet of exactly its struct's size. Structs have no implicit padding (asserted in messages.c);
   strings are NUL-terminated with zeroes to the end of the field; fields named `zero` are zero. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/address.h"
#include "shared/limits.h"

/* Who is at the other end of the parent's channel. Bits, so that a message can be of several links. */
enum link {
  LINK_WORKER = 1,
  LINK_RESOLVER = 2,
};
#define LINK_ANY (LINK_WORKER | LINK_RESOLVER)

enum receiver { TO_PARENT, TO_CHILD };

/* State of the receiver. A child is STARTING until it has said READY; DRAINING after DRAIN. */
enum link_state {
  LINK_STARTING = 1,
  LINK_RUNNING = 2,
  LINK_DRAINING = 4,
};
#define LINK_SERVING (LINK_RUNNING | LINK_DRAINING)

/* clang-format off */
/* X(NAME, number, struct, links, receiver, with descriptor, states of the receiver, what it says) */
#define MESSAGES(X) \
  X(READY,           1, msg_ready,           LINK_ANY,      TO_PARENT, 0, LINK_STARTING, "confined; what was waived") \
  X(ASK_EGRESS,      2, msg_ask_egress,      LINK_WORKER,   TO_PARENT, 1, LINK_SERVING,  "may this client go to host and port; the client's descriptor comes along") \
  X(ABANDON,         3, msg_abandon,         LINK_WORKER,   TO_PARENT, 0, LINK_SERVING,  "the client of an ask is gone; late is normal") \
  X(SESSION_CLOSED,  4, msg_session_closed,  LINK_WORKER,   TO_PARENT, 0, LINK_SERVING,  "a granted session ended, with its byte counts") \
  X(WORKER_REFUSED,  5, msg_worker_refused,  LINK_WORKER,   TO_PARENT, 1, LINK_SERVING,  "refused by the worker itself, for the record; the client's descriptor comes along") \
  X(LOOKUP_ANSWER,   6, msg_lookup_answer,   LINK_RESOLVER, TO_PARENT, 0, LINK_SERVING,  "addresses of a name, or why there are none") \
  X(WANT_SOCKET,     7, msg_want_socket,     LINK_RESOLVER, TO_PARENT, 0, LINK_SERVING,  "a socket connected to a nameserver, please") \
  X(WORKER_SETTINGS, 32, msg_worker_settings, LINK_WORKER,  TO_CHILD,  0, LINK_SERVING,  "limits; first after READY, again after a reload") \
  X(LISTENER,        33, msg_listener,       LINK_WORKER,   TO_CHILD,  0, LINK_SERVING,  "the listener at a fixed descriptor number; accept from now on") \
  X(GRANT,           34, msg_grant,          LINK_WORKER,   TO_CHILD,  1, LINK_SERVING,  "go ahead: here is the connected upstream") \
  X(REFUSAL,         35, msg_refusal,        LINK_WORKER,   TO_CHILD,  0, LINK_SERVING,  "no, and why") \
  X(DRAIN,           36, msg_drain,          LINK_WORKER,   TO_CHILD,  0, LINK_SERVING,  "stop accepting, let sessions end, then exit") \
  X(END,             37, msg_end,            LINK_WORKER,   TO_CHILD,  0, LINK_SERVING,  "cut every session by a reset, report it, then exit") \
  X(RESOLVER_SETTINGS, 48, msg_resolver_settings, LINK_RESOLVER, TO_CHILD, 0, LINK_SERVING, "nameservers and time limits; first after READY") \
  X(HOSTS_FILE,      49, msg_hosts_file,     LINK_RESOLVER, TO_CHILD,  1, LINK_SERVING,  "content of the hosts file in a sealed memfd; replaces the former") \
  X(LOOKUP,          50, msg_lookup,         LINK_RESOLVER, TO_CHILD,  0, LINK_SERVING,  "resolve a canonical name") \
  X(LOOKUP_CANCEL,   53, msg_lookup_cancel,  LINK_RESOLVER, TO_CHILD,  0, LINK_SERVING,  "nobody waits for this lookup any more: no answer, no further work for it alone") \
  X(SOCKET,          51, msg_socket,         LINK_RESOLVER, TO_CHILD,  1, LINK_SERVING,  "the socket that was wanted") \
  X(SOCKET_FAILED,   52, msg_socket_failed,  LINK_RESOLVER, TO_CHILD,  0, LINK_SERVING,  "the socket that was wanted cannot be had now")

enum message_type {
#define X(name, number, payload, links, to, descriptor, states, says) MSG_##name = number,
  MESSAGES(X)
#undef X
  MSG_TYPE_END = 64
};
/* clang-format on */

/* Bits of confinement steps (policy/confinement/steps.h) done and waived. */
struct msg_ready {
  uint32_t type;
  uint32_t steps_done;
  uint32_t steps_waived;
  uint32_t zero;
};

struct msg_ask_egress {
  uint32_t type;
  uint16_t port; /* 1 to 65535 */
  uint16_t zero;
  uint64_t ask;              /* chosen by the worker, never 0, not in flight yet; comes back in the answer */
  char host[HOST_TEXT_SIZE]; /* canonical form of policy/egress/host.h */
};

struct msg_abandon {
  uint32_t type;
  uint32_t zero;
  uint64_t ask;
};

struct msg_session_closed {
  uint32_t type;
  uint16_t ending; /* enum ending */
  uint16_t zero;
  uint64_t session;  /* from msg_grant */
  uint64_t bytes_up; /* client to upstream */
  uint64_t bytes_down;
};

struct msg_worker_refused {
  uint32_t type;
  uint16_t reason; /* enum reason: BAD_REQUEST, HEAD_TOO_LARGE, REQUEST_TIMEOUT, METHOD_NOT_ALLOWED, CLIENT_GONE */
  uint16_t zero;
};

enum lookup_status {
  LOOKUP_FOUND,
  LOOKUP_NO_NAME, /* NXDOMAIN, or no address of either family */
  LOOKUP_FAILED,  /* SERVFAIL, REFUSED, malformed answers */
  LOOKUP_TIMED_OUT,
  LOOKUP_OVERLOADED,
  LOOKUP_STATUS_COUNT
};

struct msg_lookup_answer {
  uint32_t type;
  uint16_t status; /* enum lookup_status */
  uint16_t count;  /* > 0 exactly when FOUND */
  uint64_t lookup;
  struct address addresses[LOOKUP_ADDRESSES_MAX]; /* family 4 or 6 below count, all zero from there on */
};

enum socket_kind { SOCKET_UDP, SOCKET_TCP, SOCKET_KIND_COUNT };

struct msg_want_socket {
  uint32_t type;
  uint16_t server; /* index into the nameservers of the settings */
  uint16_t kind;   /* enum socket_kind */
  uint64_t ticket; /* chosen by the resolver; comes back */
};

struct msg_worker_settings {
  uint32_t type;
  uint32_t credit; /* asks in flight, at most */
  uint32_t head_timeout_ms;
  uint32_t answer_timeout_ms; /* an ask that the parent has not answered by then is a 504 */
  uint32_t tunnel_idle_ms;
  uint32_t half_open_idle_ms;
  uint32_t buffered_bytes;       /* per direction */
  uint32_t buffered_total_bytes; /* of the worker: over it reads pause */
  uint32_t sessions_max;         /* per listener */
  uint32_t log_level;
  uint32_t log_json; /* 0 or 1 */
  uint32_t zero;
};

struct msg_listener {
  uint32_t type;
  uint16_t descriptor; /* CHILD_LISTENER_FD_FIRST <= descriptor < CHILD_LISTENER_FD_END */
  uint16_t zero;
};

struct msg_grant {
  uint32_t type;
  uint32_t zero;
  uint64_t ask;
  uint64_t session;
};

struct msg_refusal {
  uint32_t type;
  uint16_t reason; /* enum reason */
  uint16_t zero;
  uint64_t ask;
  uint64_t session;
  char policy[POLICY_NAME_SIZE]; /* empty where no policy was involved */
  char rule[RULE_TEXT_SIZE];     /* DENIED: the deny rule; NOT_ALLOWED: the entry that would permit; else empty */
  char address_class[POLICY_NAME_SIZE]; /* BLOCKED_ADDRESS: name of the class; else empty */
  char message[POLICY_MESSAGE_SIZE];    /* the policy's own; may be empty */
};

struct msg_drain {
  uint32_t type;
  uint32_t zero;
};

struct msg_end {
  uint32_t type;
  uint32_t zero;
};

struct msg_resolver_settings {
  uint32_t type;
  uint32_t servers;    /* count, may be 0: then only the hosts file answers */
  uint32_t timeout_ms; /* of a whole lookup */
  uint32_t log_level;
  uint32_t log_json;
  uint32_t zero;
};

struct msg_hosts_file {
  uint32_t type;
  uint32_t bytes; /* at most HOSTS_FILE_BYTES_MAX */
};

struct msg_lookup {
  uint32_t type;
  uint32_t zero;
  uint64_t lookup;
  char name[HOST_TEXT_SIZE];
};

struct msg_lookup_cancel {
  uint32_t type;
  uint32_t zero;
  uint64_t lookup;
};

struct msg_socket {
  uint32_t type;
  uint32_t zero;
  uint64_t ticket;
};

struct msg_socket_failed {
  uint32_t type;
  uint32_t zero;
  uint64_t ticket;
};

/* Room for any message. `type` is the first field of each. */
union message {
  uint32_t type;
#define X(name, number, payload, links, to, descriptor, states, says) struct payload name;
  MESSAGES(X)
#undef X
};

/* Size of the message's packet, or 0 for an unknown type. */
size_t message_size(uint32_t type);

/* Name for logs; "unknown" for an unknown type. */
const char *message_name(uint32_t type);

/* Whether the message comes with a descriptor. */
bool message_has_descriptor(uint32_t type);

/* Checks what holds in whatever state: known type for this link and receiver, exact size, terminated strings,
   zeroes where they belong. NULL when all is well, else a literal that says what is wrong. */
const char *message_check(const union message *message, size_t size, enum link link, enum receiver receiver);

/* Whether the receiver, in this state, accepts the type. */
bool message_allowed(uint32_t type, enum link_state state);
