#include "parent/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parent/audit_sync.h"
#include "shared/clock.h"
#include "shared/descriptors.h"
#include "shared/log.h"
#include "shared/text.h"

#define AUDIT_FILE_MODE 0640
#define AUDIT_LINE_MAX 16384             /* every field is bounded far below it */
#define AUDIT_REPORTS_KEPT_MAX (1 << 20) /* bytes of reports that wait for a disk */

struct buffer {
  char *bytes;
  size_t length;
  size_t room;
};

struct audit {
  char *path;
  int fd;
  bool broken;
  bool gate_incomplete; /* memory ran out for a gate line: the batch cannot be vouched for */
  struct audit_sync *sync;
  struct buffer gate;
  struct buffer reports;
  uint64_t reports_lost;
  enum audit_kind line_kind;
  size_t line_length;
  char line[AUDIT_LINE_MAX];
};

static int open_file(const char *path)
{
  int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, AUDIT_FILE_MODE);
  if (fd < 0)
    return -errno;
  /* What a machine that lost its power left of a last line must not swallow the first one of ours. */
  struct stat now;
  char last;
  if (fstat(fd, &now) == 0 && S_ISREG(now.st_mode) && now.st_size > 0 && pread(fd, &last, 1, now.st_size - 1) == 1 &&
      last != '\n' && write(fd, "\n", 1) < 0)
    log_warning("audit log \"%s\" ends in a partial line: %s", path, strerror(errno));
  return fd;
}

int audit_open(const char *path, unsigned fsync_ms, struct audit **ret)
{
  cleanup_fd int fd = open_file(path);
  if (fd < 0) {
    int error = fd;
    fd = -1;
    return error;
  }
  struct audit *audit = calloc(1, sizeof *audit);
  if (!audit || !(audit->path = strdup(path))) {
    free(audit);
    return -ENOMEM;
  }
  int started = audit_sync_start(fsync_ms, &audit->sync);
  if (started < 0) {
    free(audit->path);
    free(audit);
    return started;
  }
  audit->fd = steal_fd(&fd);
  *ret = audit;
  return 0;
}

void audit_close(struct audit *audit)
{
  audit_commit(audit);
  audit_sync_stop(audit->sync);
  descriptor_close(&audit->fd);
  free(audit->gate.bytes);
  free(audit->reports.bytes);
  free(audit->path);
  free(audit);
}

bool audit_is_broken(const struct audit *audit)
{
  return audit->broken;
}

static bool buffer_append(struct buffer *buffer, const char *bytes, size_t length)
{
  if (buffer->length + length > buffer->room) {
    size_t room = buffer->room ? buffer->room * 2 : 16384;
    while (room < buffer->length + length)
      room *= 2;
    char *grown = realloc(buffer->bytes, room);
    if (!grown)
      return false;
    buffer->bytes = grown;
    buffer->room = room;
  }
  memcpy(buffer->bytes + buffer->length, bytes, length);
  buffer->length += length;
  return true;
}

static void put(struct audit *audit, const char *bytes, size_t length)
{
  size_t room = sizeof audit->line - audit->line_length;
  if (length > room)
    length = room;
  memcpy(audit->line + audit->line_length, bytes, length);
  audit->line_length += length;
}

static void put_key(struct audit *audit, const char *key)
{
  put(audit, ",\"", 2);
  put(audit, key, strlen(key));
  put(audit, "\":", 2);
}

void audit_line_begin(struct audit *audit, enum audit_kind kind, const char *event)
{
  char time[32];
  clock_wall_text(time, sizeof time);
  audit->line_kind = kind;
  audit->line_length = 0;
  put(audit, "{\"time\":\"", 9);
  put(audit, time, strlen(time));
  put(audit, "\"", 1);
  audit_text(audit, "event", event);
}

void audit_text(struct audit *audit, const char *key, const char *value)
{
  put_key(audit, key);
  if (!value) {
    put(audit, "null", 4);
    return;
  }
  char escaped[6 * 512 + 1];
  size_t length = text_escape_json(value, strlen(value), escaped, sizeof escaped);
  put(audit, "\"", 1);
  put(audit, escaped, length);
  put(audit, "\"", 1);
}

void audit_number(struct audit *audit, const char *key, uint64_t value)
{
  char digits[24];
  size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
  put_key(audit, key);
  put(audit, digits, length);
}

void audit_session(struct audit *audit, uint64_t session)
{
  char digits[24];
  snprintf(digits, sizeof digits, "%016llx", (unsigned long long)session);
  audit_text(audit, "session", digits);
}

void audit_endpoint(struct audit *audit, const char *key, const struct endpoint *endpoint)
{
  char text[ADDRESS_TEXT_SIZE];
  audit_text(audit, key, endpoint->address.family ? endpoint_format(endpoint, text, sizeof text) : NULL);
}

void audit_line_end(struct audit *audit)
{
  put(audit, "}\n", 2);
  bool report = audit->line_kind == AUDIT_REPORT;
  struct buffer *buffer = report ? &audit->reports : &audit->gate;
  bool full = report && buffer->length + audit->line_length > AUDIT_REPORTS_KEPT_MAX;
  if (!full && buffer_append(buffer, audit->line, audit->line_length))
    return;
  if (report)
    audit->reports_lost++;
  else
    audit->gate_incomplete = true;
}

/* A file that was removed or renamed away is opened anew under its path, so that records do not vanish with it. */
static bool file_is_in_place(struct audit *audit, off_t *ret_size)
{
  struct stat now;
  if (fstat(audit->fd, &now) < 0)
    return false;
  *ret_size = S_ISREG(now.st_mode) ? now.st_size : -1;
  if (now.st_nlink > 0)
    return true;
  int fd = open_file(audit->path);
  if (fd < 0)
    return false;
  audit_sync_forget(audit->sync);
  close(audit->fd);
  audit->fd = fd;
  log_warning("audit log \"%s\" had been removed; a new file is written under its path", audit->path);
  return fstat(fd, &now) == 0 && ((*ret_size = S_ISREG(now.st_mode) ? now.st_size : -1), true);
}

/* All of it or nothing: what a full disk took of a line is cut off again. */
static int write_whole(struct audit *audit, const struct buffer *buffer, off_t size_before)
{
  size_t done = 0;
  while (done < buffer->length) {
    ssize_t written = write(audit->fd, buffer->bytes + done, buffer->length - done);
    if (written > 0) {
      done += (size_t)written;
      continue;
    }
    if (written < 0 && errno == EINTR)
      continue;
    int error = written < 0 ? errno : EIO;
    if (done > 0 && size_before >= 0 && ftruncate(audit->fd, size_before) < 0)
      log_error("audit log \"%s\": a partial line could not be cut off: %s", audit->path, strerror(errno));
    return -error;
  }
  return 0;
}

static int commit(struct audit *audit)
{
  off_t size;
  errno = 0;
  if (!file_is_in_place(audit, &size))
    return errno ? -errno : -EIO;
  int error = audit_sync_error(audit->sync);
  if (error) {
    audit_sync_mark(audit->sync, audit->fd); /* tried again until it succeeds; until then nothing is granted */
    return -error;
  }
  int failed = write_whole(audit, &audit->reports, size);
  if (failed < 0)
    return failed;
  if (size >= 0)
    size += (off_t)audit->reports.length;
  audit->reports.length = 0;
  failed = write_whole(audit, &audit->gate, size);
  if (failed < 0)
    return failed;
  audit_sync_mark(audit->sync, audit->fd);
  return 0;
}

static void report_gap(struct audit *audit)
{
  if (audit->reports_lost == 0)
    return;
  uint64_t lost = audit->reports_lost;
  audit->reports_lost = 0;
  audit_line_begin(audit, AUDIT_REPORT, "gap");
  audit_number(audit, "reports_lost", lost);
  audit_line_end(audit);
}

bool audit_commit(struct audit *audit)
{
  if (audit->gate.length == 0 && audit->reports.length == 0 && !audit->broken && !audit->gate_incomplete)
    return true;
  int failed = audit->gate_incomplete ? -ENOMEM : commit(audit);
  audit->gate.length = 0;
  audit->gate_incomplete = false;
  if (failed < 0) {
    if (!audit->broken)
      log_error("audit log \"%s\" cannot be written (%s): new connections are refused until it can", audit->path,
                strerror(-failed));
    audit->broken = true;
    return false;
  }
  if (audit->broken) {
    log_info("audit log \"%s\" can be written again", audit->path);
    audit->broken = false;
    report_gap(audit);
  }
  return true;
}
