#include <criterion/criterion.h>
#include <string.h>

#include "parent/books.h"

/* The books compare children by identity only. */
static const struct child *const one = (const struct child *)0x10;
static const struct child *const two = (const struct child *)0x20;

static struct grant *enter(struct books *books, uint64_t session, const struct child *child)
{
  struct client client = {0};
  struct endpoint upstream = {0};
  return books_enter(books, session, child, &client, "example.org", 443, &upstream);
}

static void count(const struct grant *grant, void *context)
{
  cr_expect_eq(grant->child, one);
  ++*(size_t *)context;
}

Test(books, grants_are_found_until_struck_out)
{
  struct books *books = books_new();
  for (uint64_t session = 5000; session < 15000; session++)
    cr_assert_not_null(enter(books, session, session % 2 ? one : two));
  cr_expect_eq(books_count(books), 10000);
  for (uint64_t session = 5000; session < 15000; session++)
    cr_assert_eq(books_find(books, session)->session, session);
  cr_expect_null(books_find(books, 15000));
  for (uint64_t session = 5000; session < 15000; session += 5)
    books_strike(books, books_find(books, session));
  cr_expect_null(books_find(books, 5005));
  cr_expect_not_null(books_find(books, 5006));
  cr_expect_eq(books_count(books), 8000);
  size_t struck = 0;
  books_strike_child(books, one, count, &struck);
  cr_expect_eq(struck, 4000);
  cr_expect_eq(books_count(books), 4000);
  cr_expect_null(books_find(books, 5001));
  books_free(books);
}

Test(books, the_host_is_copied)
{
  struct books *books = books_new();
  struct client client = {0};
  struct endpoint upstream = {.port = 443};
  char host[] = "example.org";
  books_enter(books, 1, one, &client, host, 443, &upstream);
  host[0] = 'X';
  cr_expect_str_eq(books_find(books, 1)->host, "example.org");
  books_free(books);
}
