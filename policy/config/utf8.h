/* Pure. */
#pragma once

#include <stddef.h>

/* NULL when `bytes` is UTF-8 (RFC 3629: no surrogates, no overlong forms) without control bytes but tab, LF and CR;
   else a literal that says what is wrong, with *ret_line (from 1) where. */
const char *utf8_find_invalid(const char *bytes, size_t length, unsigned *ret_line);
