#include "parent/books.h"

#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"

#define BUCKETS_FIRST 1024

struct books {
  struct grant **buckets; /* a power of two; session ids are consecutive, their low bits spread well */
  size_t bucket_count;
  size_t count;
  struct grant *first; /* of all children; children are few and die seldom */
};

struct books *books_new(void)
{
  struct books *books = calloc(1, sizeof *books);
  if (!books)
    return NULL;
  books->bucket_count = BUCKETS_FIRST;
  books->buckets = calloc(books->bucket_count, sizeof *books->buckets);
  if (!books->buckets) {
    free(books);
    return NULL;
  }
  return books;
}

void books_free(struct books *books)
{
  while (books->first)
    books_strike(books, books->first);
  free(books->buckets);
  free(books);
}

static struct grant **bucket_of(const struct books *books, uint64_t session)
{
  return &books->buckets[session & (books->bucket_count - 1)];
}

static void grow(struct books *books)
{
  size_t wider = books->bucket_count * 2;
  struct grant **buckets = calloc(wider, sizeof *buckets);
  if (!buckets)
    return; /* longer chains are slower, not wrong */
  free(books->buckets);
  books->buckets = buckets;
  books->bucket_count = wider;
  for (struct grant *grant = books->first; grant; grant = grant->next) {
    struct grant **bucket = bucket_of(books, grant->session);
    grant->hash_next = *bucket;
    *bucket = grant;
  }
}

struct grant *books_enter(struct books *books, uint64_t session, const struct child *child, const struct client *client,
                          const char *host, uint16_t port, const struct endpoint *upstream)
{
  size_t length = strlen(host) + 1;
  struct grant *grant = malloc(sizeof *grant + length);
  if (!grant)
    return NULL;
  if (books->count >= books->bucket_count)
    grow(books);
  struct grant **bucket = bucket_of(books, session);
  *grant = (struct grant){
    .hash_next = *bucket,
    .next = books->first,
    .session = session,
    .since_ms = clock_monotonic_ms(),
    .child = child,
    .client = *client,
    .upstream = *upstream,
    .port = port,
  };
  memcpy(grant->host, host, length);
  *bucket = grant;
  if (books->first)
    books->first->previous = grant;
  books->first = grant;
  books->count++;
  return grant;
}

struct grant *books_find(const struct books *books, uint64_t session)
{
  struct grant *grant = *bucket_of(books, session);
  while (grant && grant->session != session)
    grant = grant->hash_next;
  return grant;
}

void books_strike(struct books *books, struct grant *grant)
{
  struct grant **link = bucket_of(books, grant->session);
  while (*link != grant)
    link = &(*link)->hash_next;
  *link = grant->hash_next;
  if (grant->previous)
    grant->previous->next = grant->next;
  else
    books->first = grant->next;
  if (grant->next)
    grant->next->previous = grant->previous;
  books->count--;
  free(grant);
}

void books_strike_child(struct books *books, const struct child *child,
                        void (*each)(const struct grant *grant, void *context), void *context)
{
  for (struct grant *grant = books->first, *next; grant; grant = next) {
    next = grant->next;
    if (grant->child != child)
      continue;
    each(grant, context);
    books_strike(books, grant);
  }
}

size_t books_count(const struct books *books)
{
  return books->count;
}
