#include "tests/confinement/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/descriptors.h"

#define DECIMAL 10
#define CONTENT_SIZE 8192

static void path_of(pid_t pid, const char *name, char path[PATH_MAX])
{
  snprintf(path, PATH_MAX, "/proc/%d/%s", (int)pid, name);
}

const char *procfs_content(pid_t pid, const char *name)
{
  static char content[CONTENT_SIZE];
  char path[PATH_MAX];
  path_of(pid, name, path);
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? 0 : read(fd, content, sizeof content - 1);
  content[size < 0 ? 0 : size] = '\0';
  for (ssize_t i = 0; i < size; i++)
    if (content[i] == '\0')
      content[i] = '\n';
  return content;
}

const char *procfs_status(pid_t pid, const char *key)
{
  static char value[256];
  size_t length = strlen(key);
  value[0] = '\0';
  for (const char *line = procfs_content(pid, "status"); line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, key, length) != 0 || line[length] != ':')
      continue;
    line += length + 1;
    line += strspn(line, " \t");
    size_t size = strcspn(line, "\n");
    while (size > 0 && line[size - 1] == ' ')
      size--;
    snprintf(value, sizeof value, "%.*s", (int)size, line);
    break;
  }
  return value;
}

const char *procfs_link(pid_t pid, const char *name)
{
  static char target[PATH_MAX];
  char path[PATH_MAX];
  path_of(pid, name, path);
  ssize_t length = readlink(path, target, sizeof target - 1);
  target[length < 0 ? 0 : length] = '\0';
  return target;
}

int procfs_entries(pid_t pid, const char *name)
{
  char path[PATH_MAX];
  path_of(pid, name, path);
  DIR *folder = opendir(path);
  if (!folder)
    return -1;
  int count = 0;
  for (struct dirent *entry; (entry = readdir(folder));)
    count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  closedir(folder);
  return count;
}

size_t procfs_children(pid_t pid, pid_t *ret, size_t most)
{
  char name[64];
  snprintf(name, sizeof name, "task/%d/children", (int)pid);
  size_t count = 0;
  const char *at = procfs_content(pid, name);
  for (char *end; count < most; at = end) {
    long child = strtol(at, &end, DECIMAL);
    if (end == at)
      break;
    ret[count++] = (pid_t)child;
  }
  return count;
}
