/* The audit log: one JSON object a line, written before the effect that it records. Trust: privileged; writes text that
   came from workers, escaped.

   Lines are gathered with audit_line_* and written together by audit_commit: gate lines (grants and refusals) must be
   in the file before their effect; report lines (ends, events) are kept and written when they can be. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/address.h"

struct audit;

/* Opens (appending, mode 0640, created when missing) and starts the thread that makes it durable at most every
   `fsync_ms`. 0 with *ret owned by the caller, or -errno. Call before capabilities are dropped: the thread drops its
   own. -EBUSY: another daemon writes it. */
int audit_open(const char *path, unsigned fsync_ms, struct audit **ret);

/* What to do about an error of audit_open: a sentence, constant or strerror's. */
const char *audit_open_hint(int error);

/* Whether the file could be opened anew now that privileges are dropped, as must be done when it is moved or removed.
   0 or -errno. */
int audit_check_reopen(const struct audit *audit);

/* Writes what is left, makes it durable, ends the thread, frees. */
void audit_close(struct audit *audit);

enum audit_kind {
  AUDIT_GATE,   /* dropped when the commit fails: the effect becomes a refusal */
  AUDIT_REPORT, /* kept for the next commit, up to a bound; then counted and reported as a gap */
};

/* Begins a line: {"time":...,"event":"EVENT"}. Then fields in any order, then audit_line_end. */
void audit_line_begin(struct audit *audit, enum audit_kind kind, const char *event);
void audit_text(struct audit *audit, const char *key, const char *value); /* escaped; NULL becomes null */
void audit_number(struct audit *audit, const char *key, uint64_t value);
void audit_session(struct audit *audit, uint64_t session);
void audit_endpoint(struct audit *audit, const char *key, const struct endpoint *endpoint);
void audit_line_end(struct audit *audit);

/* Writes all gathered lines. True when every gate line is in the file. False: the gate lines are forgotten, and none of
   their effects may happen. Never blocks on durability. */
bool audit_commit(struct audit *audit);

/* Whether the last attempt failed. */
bool audit_is_broken(const struct audit *audit);
