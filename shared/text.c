#include "shared/text.h"

#include <string.h>

size_t text_escape_json(const char *bytes, size_t length, char *ret, size_t size)
{
  static const char hex[] = "0123456789abcdef";
  size_t used = 0;
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)bytes[i];
    char escape[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    const char *piece = escape;
    size_t piece_length = sizeof escape;
    if (byte == '"' || byte == '\\') {
      escape[1] = (char)byte;
      piece_length = 2;
    } else if (byte >= 0x20 && byte < 0x7f) {
      piece = bytes + i;
      piece_length = 1;
    }
    if (used + piece_length >= size)
      break;
    memcpy(ret + used, piece, piece_length);
    used += piece_length;
  }
  if (size > 0)
    ret[used] = '\0';
  return used;
}

size_t text_printable(const char *bytes, size_t length, char *ret, size_t size)
{
  size_t used = 0;
  for (; used < length && used + 1 < size; used++) {
    unsigned char byte = (unsigned char)bytes[used];
    ret[used] = byte >= 0x20 && byte < 0x7f ? (char)byte : '?';
  }
  if (size > 0)
    ret[used] = '\0';
  return used;
}

bool text_fill(char *field, size_t size, const char *text)
{
  size_t length = strnlen(text, size);
  bool fits = length < size;
  if (!fits)
    length = size - 1;
  memset(field, 0, size);
  memcpy(field, text, length);
  return fits;
}
