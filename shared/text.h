/* Bounded text building: escapes and appends that cannot overrun. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* JSON string escape of `length` bytes, quotes not included; control bytes, bytes of 0x7f and above, quotes and
   backslashes become escapes (each byte for itself, as \u00XX). Always terminates; stops at a whole escape when
   `size` ends. Returns the length written. */
size_t text_escape_json(const char *bytes, size_t length, char *ret, size_t size);

/* Copies with every byte outside printable ASCII replaced by '?'; for reason phrases and terminals. Returns the length.
 */
size_t text_printable(const char *bytes, size_t length, char *ret, size_t size);

/* Copies a NUL-terminated string into a field and zeroes the rest, as messages need it. False when it did not fit
   (then it is cut). */
bool text_fill(char *field, size_t size, const char *text);
