/* What was granted and still stands: the parent's own knowledge, on which limits, cuts and reports rest. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "parent/client.h"
#include "shared/address.h"

struct child;

struct grant {
  struct grant *hash_next;
  struct grant *previous;
  struct grant *next;
  uint64_t session;
  uint64_t since_ms;
  const struct child *child;
  struct client client;
  struct endpoint upstream;
  uint16_t port;
  char host[]; /* as asked */
};

struct books;

struct books *books_new(void); /* NULL when memory is short */
void books_free(struct books *books);

/* Enters a grant. NULL when memory is short: then nothing may be granted. */
struct grant *books_enter(struct books *books, uint64_t session, const struct child *child, const struct client *client,
                          const char *host, uint16_t port, const struct endpoint *upstream);

/* NULL when unknown. */
struct grant *books_find(const struct books *books, uint64_t session);

/* Strikes out and frees. */
void books_strike(struct books *books, struct grant *grant);

/* Strikes out all grants of a child, calling `each` for every one before. */
void books_strike_child(struct books *books, const struct child *child,
                        void (*each)(const struct grant *grant, void *context), void *context);

size_t books_count(const struct books *books);
