#include "shared/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/text.h"

#define ESCAPED_SIZE (3 * LOG_MESSAGE_SIZE)
#define LINE_SIZE (ESCAPED_SIZE + 256) /* below PIPE_BUF: a pipe that is writable takes it whole */

static char process_name[48] = "sallyport";
static enum log_level least_level = LOG_LEVEL_INFO;
static bool as_json;
static bool as_packets;
static bool never_wait;
static unsigned long left_out;

static const char *const level_names[] = {"debug", "info", "warning", "error"};

void log_setup(const char *process, enum log_level least, bool json)
{
  snprintf(process_name, sizeof process_name, "%s", process);
  least_level = least;
  as_json = json;
}

void log_never_wait(void)
{
  never_wait = true;
}

void log_setup_packets(void)
{
  as_packets = true;
}

bool log_enabled(enum log_level level)
{
  return level >= least_level;
}

static bool would_wait(void)
{
  struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
  return never_wait && poll(&out, 1, 0) == 0;
}

static void write_line(const char *process, enum log_level level, const char *message, size_t length)
{
  char escaped[ESCAPED_SIZE];
  text_escape_json(message, length, escaped, sizeof escaped);
  char stamp[32];
  clock_wall_text(stamp, sizeof stamp);
  char line[LINE_SIZE];
  int size = snprintf(line, sizeof line,
                      as_json ? "{\"time\":\"%s\",\"level\":\"%s\",\"process\":\"%s\",\"msg\":\"%s\"}\n"
                              : "time=%s level=%s process=\"%s\" msg=\"%s\"\n",
                      stamp, level_names[level], process, escaped);
  /* A log that cannot be written has nobody left to be told. */
  if (size > 0 && write(STDERR_FILENO, line, (size_t)size) < 0)
    left_out++;
}

void log_write_for(const char *process, enum log_level level, const char *message, size_t length)
{
  if (!log_enabled(level))
    return;
  if (would_wait()) {
    left_out++;
    return;
  }
  if (left_out > 0) {
    char told[64];
    int size = snprintf(told, sizeof told, "%lu lines were left out: the log was not read", left_out);
    left_out = 0;
    write_line(process_name, LOG_LEVEL_WARNING, told, (size_t)size);
    if (would_wait()) {
      left_out++;
      return;
    }
  }
  write_line(process, level, message, length);
}

void log_write(enum log_level level, const char *format, ...)
{
  if (!log_enabled(level))
    return;
  char packet[1 + LOG_MESSAGE_SIZE] = {(char)level};
  char *message = packet + 1;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(message, LOG_MESSAGE_SIZE, format, arguments);
  va_end(arguments);
  if (length >= LOG_MESSAGE_SIZE)
    memcpy(message + LOG_MESSAGE_SIZE - 4, "...", 4);
  size_t shown = strlen(message);
  if (!as_packets)
    log_write_for(process_name, level, message, shown);
  else if (write(STDERR_FILENO, packet, 1 + shown) < 0)
    return; /* the parent does not keep up: it has the counters */
}
