/* Problems as they are found, for config_load. A failed allocation is remembered, and told once at the end. */
#pragma once

#include <stdbool.h>

#include "policy/config/config.h"

struct report_builder {
  struct config_report report;
  size_t warnings;
  size_t omitted;
  bool out_of_memory;
};

/* `line` 0: the file as a whole. Bytes outside printable ASCII are replaced: the text goes to terminals. At most
   CONFIG_ERRORS_SHOWN_MAX errors and as many warnings are kept; the rest is counted. */
void report_error(struct report_builder *builder, const char *file, unsigned line, const char *format, ...)
  __attribute__((format(printf, 4, 5)));
void report_warning(struct report_builder *builder, const char *file, unsigned line, const char *format, ...)
  __attribute__((format(printf, 4, 5)));

/* Sorts, adds a line about what was left out (to `file`), and hands over. */
void report_finish(struct report_builder *builder, const char *file, struct config_report *ret);
