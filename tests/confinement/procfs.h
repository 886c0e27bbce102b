/* What /proc says of another process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The value of "Key:" in /proc/PID/status, blanks trimmed. "" when it is not there. Static storage, overwritten. */
const char *procfs_status(pid_t pid, const char *key);

/* Where a link of /proc/PID leads ("ns/net", "fd/3"). "" when it cannot be read. Static storage, overwritten. */
const char *procfs_link(pid_t pid, const char *name);

/* Content of a file of /proc/PID ("uid_map", "environ"), NULs as newlines. Static storage, overwritten. */
const char *procfs_content(pid_t pid, const char *name);

/* Entries of a folder below /proc/PID but . and .., -1 when it cannot be read. */
int procfs_entries(pid_t pid, const char *name);

/* Children of a process: at most `most` into ret; the number. */
size_t procfs_children(pid_t pid, pid_t *ret, size_t most);
