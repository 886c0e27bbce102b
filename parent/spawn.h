/* Starting a child: namespaces, fixed descriptors, exec. Trust: privileged; nothing here sees a hostile byte. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "policy/confinement/confine.h"

struct spawn_descriptor {
  int fd;     /* the parent's, which keeps it */
  int number; /* what it is to be in the child */
};

struct spawn_request {
  enum role role;
  const char *binary; /* absolute path */
  const char *title;  /* argv[0]: what ps shows, "sallyport: egress worker 0" */
  bool best_effort;   /* a step that needs root may be waived */
  uid_t uid;          /* to become */
  gid_t gid;
  unsigned descriptors_max;                   /* RLIMIT_NOFILE of the child */
  int log;                                    /* becomes descriptor 2; 0: the parent's own standard error */
  const struct spawn_descriptor *descriptors; /* numbers from CHILD_CHANNEL_FD up; gaps below CHILD_LISTENER_FD_END are
                                                 filled with /dev/null, so that no session ever gets a low number */
  size_t descriptor_count;
};

/* Clones with new net, mount, pid, ipc and uts namespaces (and a user namespace without root, with maps written before
   exec), arranges the descriptors (0, 1 /dev/null; 2 the log), empties the environment but for SALLYPORT_CONFINE and
   TZ=UTC0, and executes. 0 with *ret_pid, or -errno. With best_effort and no right to namespaces, the child is started
   without them and says so in its READY. */
int spawn_child(const struct spawn_request *request, pid_t *ret_pid);

/* Absolute path of a child's binary: beside this executable when it is there, else in the libexec directory. 0 or
   -errno; *ret is owned by the caller. */
int spawn_find_binary(const char *name, char **ret);
