#include "policy/config/report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "shared/text.h"

#define PROBLEM_TEXT_SIZE 1024
#define PROBLEMS_KEPT (2 * CONFIG_ERRORS_SHOWN_MAX + 1) /* errors, warnings, the line about the rest */

static void keep(struct report_builder *builder, const char *file, unsigned line, bool is_error, const char *raw)
{
  struct config_report *report = &builder->report;
  if (!report->problems)
    report->problems = calloc(PROBLEMS_KEPT, sizeof *report->problems);
  char text[PROBLEM_TEXT_SIZE];
  text_printable(raw, strlen(raw), text, sizeof text);
  struct config_problem problem = {.line = line, .is_error = is_error, .file = strdup(file), .text = strdup(text)};
  if (!report->problems || !problem.file || !problem.text) {
    free(problem.file);
    free(problem.text);
    builder->out_of_memory = true;
    return;
  }
  report->problems[report->count++] = problem;
}

static void add(struct report_builder *builder, const char *file, unsigned line, bool is_error, const char *format,
                va_list arguments)
{
  size_t *seen = is_error ? &builder->report.errors : &builder->warnings;
  if ((*seen)++ >= CONFIG_ERRORS_SHOWN_MAX) {
    builder->omitted++;
    return;
  }
  char raw[PROBLEM_TEXT_SIZE];
  vsnprintf(raw, sizeof raw, format, arguments);
  keep(builder, file, line, is_error, raw);
}

void report_error(struct report_builder *builder, const char *file, unsigned line, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  add(builder, file, line, true, format, arguments);
  va_end(arguments);
}

void report_warning(struct report_builder *builder, const char *file, unsigned line, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  add(builder, file, line, false, format, arguments);
  va_end(arguments);
}

/* By text last, so that the order never depends on the order of the checks. */
static int compare_problems(const void *left, const void *right)
{
  const struct config_problem *a = left, *b = right;
  int by_file = strcmp(a->file, b->file);
  if (by_file != 0)
    return by_file;
  if (a->line != b->line)
    return a->line < b->line ? -1 : 1;
  return strcmp(a->text, b->text);
}

void report_finish(struct report_builder *builder, const char *file, struct config_report *ret)
{
  struct config_report *report = &builder->report;
  if (report->count > 1)
    qsort(report->problems, report->count, sizeof *report->problems, compare_problems);
  if (builder->omitted > 0) {
    char rest[PROBLEM_TEXT_SIZE];
    snprintf(rest, sizeof rest, "%zu more problems are not shown", builder->omitted);
    keep(builder, file, 0, builder->report.errors > CONFIG_ERRORS_SHOWN_MAX, rest);
  }
  *ret = *report;
  *report = (struct config_report){0};
}

void config_report_clear(struct config_report *report)
{
  for (size_t i = 0; i < report->count; i++) {
    free(report->problems[i].file);
    free(report->problems[i].text);
  }
  free(report->problems);
  *report = (struct config_report){0};
}

void config_report_print(const struct config_report *report, FILE *stream)
{
  for (size_t i = 0; i < report->count; i++) {
    const struct config_problem *problem = &report->problems[i];
    char file[PROBLEM_TEXT_SIZE];
    text_printable(problem->file, strlen(problem->file), file, sizeof file);
    const char *kind = problem->is_error ? "error" : "warning";
    if (problem->line > 0)
      fprintf(stream, "%s:%u: %s: %s\n", file, problem->line, kind, problem->text);
    else
      fprintf(stream, "%s: %s: %s\n", file, kind, problem->text);
  }
}
