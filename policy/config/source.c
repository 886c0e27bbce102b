#include "policy/config/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/config/utf8.h"
#include "shared/descriptors.h"

char *source_resolve(const char *from, const char *path)
{
  const char *slash = strrchr(from, '/');
  if (path[0] == '/' || !slash)
    return strdup(path);
  char *joined;
  if (asprintf(&joined, "%.*s/%s", (int)(slash - from), from, path) < 0)
    return NULL;
  return joined;
}

/* What is wrong with the file itself; NULL when it may be believed. */
static const char *distrust(const struct stat *status, size_t most)
{
  if (!S_ISREG(status->st_mode))
    return "it is not a regular file";
  if (status->st_uid != 0 && status->st_uid != geteuid())
    return "it belongs to neither root nor the user who runs this: chown it";
  if (status->st_mode & (S_IWGRP | S_IWOTH))
    return "others than its owner can write it: chmod go-w";
  if ((size_t)status->st_size > most)
    return "it is too large";
  return NULL;
}

/* Reads to the end, whatever stat said the size was. 0, -EFBIG, -ENOMEM or -errno. */
static int read_all(int fd, size_t most, size_t expected, char **ret, size_t *ret_length)
{
  size_t capacity = (expected < most ? expected : most) + 2; /* room to see the end, and for the NUL */
  char *content = malloc(capacity);
  if (!content)
    return -ENOMEM;
  size_t length = 0;
  int result = 0;
  for (;;) {
    ssize_t got = read(fd, content + length, capacity - 1 - length);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0) {
      result = got < 0 ? -errno : 0;
      break;
    }
    length += (size_t)got;
    if (length == capacity - 1) {
      result = -EFBIG;
      break;
    }
  }
  if (result < 0) {
    free(content);
    return result;
  }
  content[length] = '\0';
  *ret = content;
  *ret_length = length;
  return 0;
}

static int check_text(const char *path, const char *content, size_t length, struct report_builder *report)
{
  unsigned line;
  const char *wrong = utf8_find_invalid(content, length, &line);
  if (!wrong)
    return 0;
  report_error(report, path, line, "%s", wrong);
  return -EINVAL;
}

int source_read(const char *path, size_t most, struct report_builder *report, const char *blame_file,
                unsigned blame_line, char **ret, size_t *ret_length)
{
  /* Not blocking: opening a FIFO would hang before it could be refused. */
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) < 0) {
    report_error(report, blame_file, blame_line, "cannot read %s: %s", path, strerror(errno));
    return -EINVAL;
  }
  const char *reason = distrust(&status, most);
  if (reason) {
    report_error(report, blame_file, blame_line, "%s is refused: %s", path, reason);
    return -EINVAL;
  }
  char *content;
  size_t length;
  int result = read_all(fd, most, (size_t)status.st_size, &content, &length);
  if (result == -ENOMEM)
    return result;
  if (result < 0) {
    report_error(report, blame_file, blame_line, "cannot read %s: %s", path,
                 result == -EFBIG ? "it is too large, or grows while it is read" : strerror(-result));
    return -EINVAL;
  }
  if (check_text(path, content, length, report) < 0) {
    free(content);
    return -EINVAL;
  }
  *ret = content;
  *ret_length = length;
  return 0;
}
