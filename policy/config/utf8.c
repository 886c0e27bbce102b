#include "policy/config/utf8.h"

#include <stdint.h>

/* RFC 3629 section 4, by first byte: how many follow, and the range of the first that does. */
static const struct lead {
  uint8_t first, last, following, low, high;
} leads[] = {
  {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe0, 0xe0, 2, 0xa0, 0xbf}, {0xe1, 0xec, 2, 0x80, 0xbf}, {0xed, 0xed, 2, 0x80, 0x9f},
  {0xee, 0xef, 2, 0x80, 0xbf}, {0xf0, 0xf0, 3, 0x90, 0xbf}, {0xf1, 0xf3, 3, 0x80, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f},
};

/* Length of the character at `bytes`, whose first byte is above 0x7f; 0 when it is invalid. */
static size_t multibyte_length(const uint8_t *bytes, size_t left)
{
  for (size_t i = 0; i < sizeof leads / sizeof leads[0]; i++) {
    const struct lead *lead = &leads[i];
    if (bytes[0] < lead->first || bytes[0] > lead->last)
      continue;
    if (left <= lead->following || bytes[1] < lead->low || bytes[1] > lead->high)
      return 0;
    for (size_t j = 2; j <= lead->following; j++) {
      if (bytes[j] < 0x80 || bytes[j] > 0xbf)
        return 0;
    }
    return (size_t)lead->following + 1;
  }
  return 0;
}

const char *utf8_find_invalid(const char *bytes, size_t length, unsigned *ret_line)
{
  const uint8_t *at = (const uint8_t *)bytes;
  *ret_line = 1;
  for (size_t i = 0; i < length;) {
    size_t step = 1;
    if (at[i] == '\0')
      return "a NUL byte: this is no text file";
    if ((at[i] < 0x20 && at[i] != '\t' && at[i] != '\n' && at[i] != '\r') || at[i] == 0x7f)
      return "a control byte";
    if (at[i] >= 0x80)
      step = multibyte_length(at + i, length - i);
    if (step == 0)
      return "not valid UTF-8";
    if (at[i] == '\n')
      ++*ret_line;
    i += step;
  }
  return NULL;
}
