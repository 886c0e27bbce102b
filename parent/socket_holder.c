#include "parent/socket_holder.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Inode of the listening socket with this port, from the kernel's own tables; 0 when there is none. */
static unsigned long listening_inode(const char *table, unsigned port)
{
  FILE *file = fopen(table, "re");
  if (!file)
    return 0;
  char line[512];
  unsigned long found = 0;
  const unsigned listening = 0x0a;
  while (!found && fgets(line, sizeof line, file)) {
    unsigned local_port, state;
    unsigned long inode;
    if (sscanf(line, "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*d %lu", &local_port, &state,
               &inode) == 3 &&
        local_port == port && state == listening)
      found = inode;
  }
  fclose(file);
  return found;
}

static bool process_holds(const char *pid, const char *link_wanted)
{
  char path[320];
  snprintf(path, sizeof path, "/proc/%s/fd", pid);
  DIR *fds = opendir(path);
  if (!fds)
    return false;
  bool holds = false;
  for (struct dirent *entry; !holds && (entry = readdir(fds));) {
    char target[64];
    ssize_t length = readlinkat(dirfd(fds), entry->d_name, target, sizeof target - 1);
    if (length > 0) {
      target[length] = '\0';
      holds = strcmp(target, link_wanted) == 0;
    }
  }
  closedir(fds);
  return holds;
}

static void process_name(const char *pid, char *ret, size_t size)
{
  char path[320];
  snprintf(path, sizeof path, "/proc/%s/comm", pid);
  FILE *file = fopen(path, "re");
  snprintf(ret, size, "?");
  if (!file)
    return;
  if (fgets(ret, (int)size, file))
    ret[strcspn(ret, "\n")] = '\0';
  fclose(file);
}

void socket_holder(const struct endpoint *endpoint, char *ret, size_t size)
{
  *ret = '\0';
  unsigned long inode = listening_inode("/proc/net/tcp", endpoint->port);
  if (!inode)
    inode = listening_inode("/proc/net/tcp6", endpoint->port);
  DIR *processes = inode ? opendir("/proc") : NULL;
  if (!processes)
    return;
  char wanted[64];
  snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
  for (struct dirent *entry; (entry = readdir(processes));) {
    if (!isdigit((unsigned char)entry->d_name[0]) || !process_holds(entry->d_name, wanted))
      continue;
    char name[32];
    process_name(entry->d_name, name, sizeof name);
    snprintf(ret, size, " (held by %s, pid %.16s; stop it or choose another port)", name, entry->d_name);
    break;
  }
  closedir(processes);
}
