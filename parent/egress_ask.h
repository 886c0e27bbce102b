/* One ask while it is being answered. Private to answer_egress.c, egress_answer.c and egress_record.c. */
#pragma once

#include "parent/answer_egress.h"
#include "parent/dial.h"
#include "parent/lookup.h"
#include "policy/egress/decide.h"

struct ask {
  struct ask *previous;
  struct ask *next; /* of asks in progress, or of decided ones */
  struct ask *hash_next;
  bool is_decided;
  struct egress *egress;
  struct child *worker;
  uint64_t id; /* the worker's */
  uint64_t session;
  struct client client;
  struct host host;
  uint16_t port;
  const struct rule *allowed_by;
  struct lookup *lookup; /* at most one of lookup and dial */
  struct dial *dial;
  /* the decision */
  enum reason reason;
  const struct rule *rule; /* that allowed or denied */
  enum address_class address_class;
  struct endpoint upstream;
  int descriptor;    /* -1: refused */
  bool holds_credit; /* counted in in_flight */
};

struct ask_list { /* in order of arrival */
  struct ask *first;
  struct ask *last;
};

#define ASK_BUCKETS 4096 /* a power of two */

struct egress {
  struct egress_settings set;
  struct supervisor *supervisor;
  struct books *books;
  struct dialer *dialer;
  struct lookups *lookups;
  struct ask_list open; /* being looked up or dialled */
  struct ask *by_id[ASK_BUCKETS];
  struct ask_list decided; /* until the next flush */
  size_t asks;
  size_t *in_flight; /* asks not yet answered, per worker index */
  uint64_t next_session;
};

/* The ask counts against its worker's credit no longer. Once or more often. */
void ask_release_credit(struct ask *ask);

void ask_list_add(struct ask_list *list, struct ask *ask);
void ask_list_remove(struct ask_list *list, struct ask *ask);

/* Adds the grant or refusal line of a decided ask. */
void egress_record(const struct ask *ask);

/* Sends the answer of a recorded ask; `recorded` false: it could not be, and the answer is a refusal. Enters a grant
   into the books. */
void egress_answer(struct ask *ask, bool recorded);

/* Report lines. */
void egress_record_abandoned(const struct ask *ask);
void egress_record_end(struct egress *egress, const struct grant *grant, enum ending ending, uint64_t bytes_up,
                       uint64_t bytes_down);
void egress_record_worker_refused(struct egress *egress, const struct child *worker, const struct client *client,
                                  enum reason reason);
