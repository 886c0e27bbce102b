/* System calls that are tried in each role, and what must come of it. Data; the probe makes the calls, the tests
 * compare.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/confinement/confine.h"

enum outcome {
  DIES,   /* SIGSYS */
  WORKS,  /* no error */
  PASSES, /* the filter lets it through, whatever the kernel says to the arguments */
  ABSENT, /* ENOSYS */
  CANARY, /* the role's own error number */
  SKIP,   /* would end the process, or is somebody else's test */
};

/* Stand for what only the probe knows. */
#define SESSION (-1001L)  /* a connected TCP socket above the fixed numbers */
#define PIPE_IN (-1002L)  /* write end */
#define PIPE_OUT (-1003L) /* read end, something is in it */
#define BUFFER (-1004L)   /* address of a page that can be written, full of zeroes */
#define MESSAGE (-1005L)  /* address of a msghdr without content */
#define ONE_BYTE (-1006L) /* address of a single iovec of one byte */
#define MAPPING (-1007L)  /* address of an anonymous page */
#define EPOLL (-1008L)
#define LISTENER CHILD_LISTENER_FD_FIRST
#define SPARE_SESSION (-1009L) /* another one, for closing */

#define ATTEMPT_ARGUMENTS 6

struct attempt {
  const char *name;
  long number;
  long arguments[ATTEMPT_ARGUMENTS];
  enum outcome outcome[ROLE_COUNT];
};

extern const struct attempt attempts[];
extern const size_t attempts_count;
