/* One line per event to standard error, logfmt or JSON. Values are escaped: a hostile string cannot break a line.
   Used by every process; a line is one write(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LOG_MESSAGE_SIZE 1024 /* the terminating NUL included */

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };

/* `process` is shown in each line ("parent", "egress worker 0"); it is copied. */
void log_setup(const char *process, enum log_level least, bool json);

/* Lines that could only be written by waiting (a pipe that nobody reads) are left out and counted, instead of holding
   up the process. For the parent; needs poll(). */
void log_never_wait(void);

/* Standard error is a datagram socket to the parent: a line goes as one packet, its level (a byte) and the bare
   message; the parent adds time and name. For children: they hold no terminal, and cannot forge each other's lines. */
void log_setup_packets(void);

/* Writes a line in the name of another process; `message` is any bytes. */
void log_write_for(const char *process, enum log_level level, const char *message, size_t length);

/* Pairs of key (a literal) and printf-formatted value would need a macro each; instead the message is a formatted
   sentence, and what it names is in quotes. Bytes outside printable ASCII are escaped. Never fails, never blocks on
   memory: 1,024 bytes at most, then cut with an ellipsis. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool log_enabled(enum log_level level);

#define log_debug(...)                         \
  do {                                         \
    if (log_enabled(LOG_LEVEL_DEBUG))          \
      log_write(LOG_LEVEL_DEBUG, __VA_ARGS__); \
  } while (0)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
