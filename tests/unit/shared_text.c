#include <criterion/criterion.h>
#include <string.h>

#include "shared/address.h"
#include "shared/text.h"

Test(text, every_byte_is_escaped_into_a_sound_json_string)
{
  char all[256], escaped[6 * 256 + 1];
  for (int i = 0; i < 256; i++)
    all[i] = (char)i;
  size_t length = text_escape_json(all, sizeof all, escaped, sizeof escaped);
  cr_expect_eq(strlen(escaped), length);
  for (size_t i = 0; i < length; i++) {
    cr_expect(escaped[i] >= 0x20 && escaped[i] < 0x7f);
    if (escaped[i] == '"')
      cr_expect_eq(escaped[i - 1], '\\');
  }
  cr_expect_not_null(strstr(escaped, "\\u000a"));
  cr_expect_not_null(strstr(escaped, "\\\""));
  cr_expect_not_null(strstr(escaped, "\\\\"));
}

Test(text, an_escape_is_whole_or_not_there)
{
  char out[8];
  for (size_t size = 1; size <= sizeof out; size++) {
    size_t length = text_escape_json("\n\n", 2, out, size);
    cr_expect_eq(length, size > 6 ? 6 : 0);
    cr_expect_eq(out[length], '\0');
  }
}

Test(text, printable_replaces_and_bounds)
{
  char out[6];
  cr_expect_eq(text_printable("a\r\n\xff\x7f", 5, out, sizeof out), 5);
  cr_expect_str_eq(out, "a????");
  cr_expect_eq(text_printable("abcdefgh", 8, out, sizeof out), 5);
  cr_expect_str_eq(out, "abcde");
}

Test(text, fill_zeroes_the_rest_and_tells_when_it_cut)
{
  char field[8];
  memset(field, 'x', sizeof field);
  cr_expect(text_fill(field, sizeof field, "ab"));
  cr_expect_eq(memcmp(field, "ab\0\0\0\0\0", sizeof field), 0);
  cr_expect_not(text_fill(field, sizeof field, "abcdefgh"));
  cr_expect_str_eq(field, "abcdefg");
}

Test(address, only_strict_spellings_are_taken)
{
  static const char *const bad[] = {"127.1",      "0x7f.0.0.1", "2130706433",        "0177.0.0.1",
                                    "127.0.0.1.", "127.0.0.01", "fe80::1%lo",        "[::1]",
                                    "",           " 127.0.0.1", "::ffff:127.0.0.256"};
  struct address a;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    cr_expect_lt(address_parse(bad[i], &a), 0, "%s", bad[i]);
  cr_expect_eq(address_parse("::ffff:127.0.0.1", &a), 0);
  cr_expect_eq(address_unmap(&a).family, 4);
}

Test(address, prefixes_are_compared_to_the_bit)
{
  struct address network, inside, outside;
  cr_assert_eq(address_parse("10.20.128.0", &network), 0);
  cr_assert_eq(address_parse("10.20.255.255", &inside), 0);
  cr_assert_eq(address_parse("10.20.127.255", &outside), 0);
  cr_expect(address_in_prefix(&inside, &network, 17));
  cr_expect_not(address_in_prefix(&outside, &network, 17));
  cr_expect(address_in_prefix(&outside, &network, 16));
  cr_expect(address_in_prefix(&network, &network, 32));
  cr_expect(address_in_prefix(&outside, &network, 0));
  struct address v6 = {.family = 6};
  cr_expect_not(address_in_prefix(&v6, &network, 0));
}
