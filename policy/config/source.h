/* Reading a file whose content decides something: who could have written it is checked first. */
#pragma once

#include <stddef.h>

#include "policy/config/report.h"

/* Reads a regular file that belongs to root or to the caller and that nobody else can write, of at most `most` bytes,
   valid UTF-8 without NUL. 0 with *ret (one NUL behind it) owned by the caller; else a problem of `blame_file`:
   `blame_line` (where the file was named; the file itself with line 0) is reported and -EINVAL returned, or -ENOMEM. */
int source_read(const char *path, size_t most, struct report_builder *report, const char *blame_file,
                unsigned blame_line, char **ret, size_t *ret_length);

/* `path` as seen from the folder of the file `from`; NULL without memory. Owned by the caller. */
char *source_resolve(const char *from, const char *path);
