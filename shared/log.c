#include "shared/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/text.h"

static char process_name[48] = "sallyport";
static enum log_level least_level = LOG_LEVEL_INFO;
static bool as_json;

static const char *const level_names[] = {"debug", "info", "warning", "error"};

void log_setup(const char *process, enum log_level least, bool json)
{
  snprintf(process_name, sizeof process_name, "%s", process);
  least_level = least;
  as_json = json;
}

bool log_enabled(enum log_level level)
{
  return level >= least_level;
}

void log_write(enum log_level level, const char *format, ...)
{
  if (!log_enabled(level))
    return;
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (length >= (int)sizeof message)
    memcpy(message + sizeof message - 4, "...", 4);

  char escaped[4 * sizeof message];
  text_escape_json(message, strlen(message), escaped, sizeof escaped);

  char stamp[32];
  clock_wall_text(stamp, sizeof stamp);

  char line[sizeof escaped + 256];
  int size = snprintf(line, sizeof line,
                      as_json ? "{\"time\":\"%s\",\"level\":\"%s\",\"process\":\"%s\",\"msg\":\"%s\"}\n"
                              : "time=%s level=%s process=\"%s\" msg=\"%s\"\n",
                      stamp, level_names[level], process_name, escaped);
  /* A log that cannot be written has nobody left to be told. */
  if (size > 0 && write(STDERR_FILENO, line, (size_t)size) < 0)
    return;
}
