/* Time. Monotonic milliseconds for deadlines, wall clock only for records. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t clock_monotonic_ms(void);

/* "2026-01-02T03:04:05.678Z" of now; `size` at least 32. */
void clock_wall_text(char *ret, size_t size);
