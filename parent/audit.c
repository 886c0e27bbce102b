#include "parent/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
  dev_t device; /* of the open file, to see that the path still names it */
  ino_t inode;
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

/* Opens the path for appending. A regular file is locked: two daemons on one log would repeat session ids, and one
   could cut off the other's line on a full disk. *ret_stat is of what was opened. */
static int open_file(const char *path, struct stat *ret_stat)
{
  cleanup_fd int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, AUDIT_FILE_MODE);
  if (fd < 0 || fstat(fd, ret_stat) < 0)
    return -errno;
  if (!S_ISREG(ret_stat->st_mode))
    return steal_fd(&fd);
  if (flock(fd, LOCK_EX | LOCK_NB) < 0)
    return errno == EWOULDBLOCK ? -EBUSY : -errno;
  /* What a machine that lost its power left of a last line must not swallow the first one of ours. */
  char last;
  if (ret_stat->st_size > 0 && pread(fd, &last, 1, ret_stat->st_size - 1) == 1 && last != '\n' &&
      write(fd, "\n", 1) < 0)
    log_warning("audit log \"%s\" ends in a partial line: %s", path, strerror(errno));
  return steal_fd(&fd);
}

static void take_file(struct audit *audit, int fd, const struct stat *now)
{
  audit->fd = fd;
  audit->device = now->st_dev;
  audit->inode = now->st_ino;
}

int audit_open(const char *path, unsigned fsync_ms, struct audit **ret)
{
  struct stat now;
  int fd = open_file(path, &now);
  if (fd < 0)
    return fd;
  struct audit *audit = calloc(1, sizeof *audit);
  int failed = audit && (audit->path = strdup(path)) ? 0 : -ENOMEM;
  if (failed == 0)
    failed = audit_sync_start(fsync_ms, &audit->sync);
  if (failed < 0) {
    close(fd);
    if (audit)
      free(audit->path);
    free(audit);
    return failed;
  }
  take_file(audit, fd, &now);
  *ret = audit;
  return 0;
}

const char *audit_open_hint(int error)
{
  switch (error) {
  case -ELOOP:
    return "it is a symbolic link, which is refused: name the file itself";
  case -EBUSY:
    return "another sallyport writes it: give each its own";
  case -ENOENT:
    return "its folder does not exist: create it, owned by the user who runs sallyport";
  case -EACCES:
  case -EPERM:
    return "the user who runs sallyport may not write there (root without the right to override counts as any user)";
  default:
    return strerror(-error);
  }
}

int audit_check_reopen(const struct audit *audit)
{
  struct stat now;
  if (fstat(audit->fd, &now) < 0)
    return -errno;
  if (!S_ISREG(now.st_mode))
    return 0;
  const char *slash = strrchr(audit->path, '/');
  char folder[PATH_MAX];
  size_t length = slash ? (size_t)(slash - audit->path) + 1 : 1;
  snprintf(folder, sizeof folder, "%.*s", (int)length, slash ? audit->path : ".");
  return access(folder, W_OK | X_OK) < 0 || access(audit->path, R_OK | W_OK) < 0 ? -errno : 0;
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

/* A file that was removed or renamed away is opened anew under its path: records neither vanish with it nor go on into
   what a rotation has put aside. */
static int find_file(struct audit *audit, off_t *ret_size)
{
  struct stat now;
  bool named = stat(audit->path, &now) == 0;
  if (!named && errno != ENOENT)
    return -errno;
  if (!named || now.st_dev != audit->device || now.st_ino != audit->inode) {
    int fd = open_file(audit->path, &now);
    if (fd < 0)
      return fd;
    audit_sync_forget(audit->sync);
    close(audit->fd);
    take_file(audit, fd, &now);
    log_info("audit log \"%s\" was moved or removed; a new file is written under its path", audit->path);
  }
  *ret_size = S_ISREG(now.st_mode) ? now.st_size : -1;
  return 0;
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

/* Ready to be written, with its size (-1: not a regular file). */
static int prepare(struct audit *audit, off_t *ret_size)
{
  int failed = find_file(audit, ret_size);
  if (failed < 0)
    return failed;
  int error = audit_sync_error(audit->sync);
  if (error)
    audit_sync_mark(audit->sync, audit->fd); /* tried again until it succeeds; until then nothing is granted */
  return -error;
}

static int write_reports(struct audit *audit, off_t *size)
{
  int failed = write_whole(audit, &audit->reports, *size);
  if (failed < 0)
    return failed;
  if (*size >= 0)
    *size += (off_t)audit->reports.length;
  audit->reports.length = 0;
  return 0;
}

static int commit(struct audit *audit)
{
  off_t size;
  int failed = prepare(audit, &size);
  if (failed == 0)
    failed = write_reports(audit, &size);
  if (failed == 0)
    failed = write_whole(audit, &audit->gate, size);
  if (failed == 0)
    audit_sync_mark(audit->sync, audit->fd);
  return failed;
}

/* Many reports at once (a worker that died with thousands of tunnels) do not wait for the end of the round. */
static bool make_room_for_report(struct audit *audit)
{
  if (audit->reports.length + audit->line_length <= AUDIT_REPORTS_KEPT_MAX)
    return true;
  off_t size;
  return !audit->broken && prepare(audit, &size) == 0 && write_reports(audit, &size) == 0;
}

void audit_line_end(struct audit *audit)
{
  put(audit, "}\n", 2);
  if (audit->line_kind == AUDIT_GATE) {
    if (!buffer_append(&audit->gate, audit->line, audit->line_length))
      audit->gate_incomplete = true;
  } else if (!make_room_for_report(audit) || !buffer_append(&audit->reports, audit->line, audit->line_length)) {
    audit->reports_lost++;
  }
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
  }
  report_gap(audit);
  return true;
}
