#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "child/resolver/hosts.h"

TestSuite(resolver_hosts);

/* The addresses of `name` as text, separated by spaces; "-" when the file does not name it. */
static const char *found(const char *text, const char *name)
{
  static char ret[LOOKUP_ADDRESSES_MAX * ADDRESS_TEXT_SIZE];
  struct hosts *hosts;
  struct address_list list;
  cr_assert_eq(hosts_parse(text, strlen(text), &hosts), 0);
  size_t used = 0;
  if (!hosts_find(hosts, name, &list)) {
    list = (struct address_list){0};
    ret[used++] = '-';
  }
  ret[used] = '\0';
  for (size_t i = 0; i < list.count; i++) {
    char one[ADDRESS_TEXT_SIZE];
    used += (size_t)snprintf(ret + used, sizeof ret - used, "%s%s", i ? " " : "",
                             address_format(&list.addresses[i], one, sizeof one));
  }
  hosts_free(hosts);
  return ret;
}

Test(resolver_hosts, lines_and_names)
{
  const char *file = "127.0.0.1\tlocalhost Loop.Test alias.test.\n"
                     "::1 localhost # loop.test is not here\n"
                     "  10.0.0.7  db.internal\r\n"
                     "10.0.0.8 db.internal db.internal\n"
                     "10.0.0.7 db.internal";
  cr_expect_str_eq(found(file, "localhost"), "127.0.0.1 ::1");
  cr_expect_str_eq(found(file, "loop.test"), "127.0.0.1");
  cr_expect_str_eq(found(file, "alias.test"), "127.0.0.1");
  cr_expect_str_eq(found(file, "db.internal"), "10.0.0.7 10.0.0.8");
  cr_expect_str_eq(found(file, "other.test"), "-");
}

Test(resolver_hosts, what_cannot_be_read_is_passed_over)
{
  cr_expect_str_eq(found("300.0.0.1 a.test\n", "a.test"), "-");
  cr_expect_str_eq(found("127.1 a.test\n", "a.test"), "-");
  cr_expect_str_eq(found("fe80::1%lo a.test\n", "a.test"), "-");
  cr_expect_str_eq(found("# 10.0.0.1 a.test\n", "a.test"), "-");
  cr_expect_str_eq(found("10.0.0.1\n10.0.0.2 a.test\n", "a.test"), "10.0.0.2");
  cr_expect_str_eq(found("10.0.0.1 b@d a.test b..d\n", "a.test"), "10.0.0.1");
  cr_expect_str_eq(found("", "a.test"), "-");
  cr_expect_str_eq(found("\n\n#\n \n", "a.test"), "-");
}

Test(resolver_hosts, nul_bytes_and_no_file)
{
  static const char bytes[] = "10.0.0.1\0 a.test\n10.0.0.2 b\0.test a.test\n";
  struct hosts *hosts;
  struct address_list list;
  cr_assert_eq(hosts_parse(bytes, sizeof bytes - 1, &hosts), 0);
  cr_assert(hosts_find(hosts, "a.test", &list));
  cr_expect_eq(list.count, 1u);
  cr_expect_not(hosts_find(hosts, "b", &list));
  hosts_free(hosts);
  cr_expect_not(hosts_find(NULL, "a.test", &list));
}

Test(resolver_hosts, bounded_addresses_of_a_name)
{
  char text[4096];
  size_t used = 0;
  for (unsigned i = 0; i < 2 * LOOKUP_ADDRESSES_MAX; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "10.0.0.1 many.test\n");
  for (unsigned i = 0; i < 3 * LOOKUP_ADDRESSES_MAX; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "10.0.0.%u many.test\n", i);
  struct hosts *hosts;
  struct address_list list;
  cr_assert_eq(hosts_parse(text, used, &hosts), 0);
  cr_assert(hosts_find(hosts, "many.test", &list));
  cr_expect_eq(list.count, (size_t)LOOKUP_ADDRESSES_MAX, "the same address again takes no room");
  hosts_free(hosts);
}
