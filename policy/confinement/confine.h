/* How a process gives up what it does not need. Data: one table of steps, one table of system calls per role, each row
   with its reason. Trust: this is what an auditor reads; runs in children before they touch a hostile byte. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum role { ROLE_PARENT, ROLE_WORKER, ROLE_RESOLVER, ROLE_COUNT };

const char *role_name(enum role role); /* "parent", "egress worker", "resolver" */

/* X(symbol, name, needs root: may be waived by best-effort, what it does) */
#define CONFINEMENT_STEPS(X)                                                                                  \
  X(NAMESPACES, "namespaces", 1, "own net, mount, pid, ipc and uts namespaces (made by the parent at clone)") \
  X(ROOT, "empty root", 1, "private mount tree, read-only empty root by pivot_root, old root detached")       \
  X(LIMITS, "resource limits", 0, "no core, no new processes, bounded descriptors")                           \
  X(BOUNDING, "bounding set", 1, "bounding and ambient sets emptied, securebits locked")                      \
  X(GROUPS, "supplementary groups", 1, "none")                                                                \
  X(IDS, "user and group", 1, "the unprivileged user's")                                                      \
  X(CAPABILITIES, "capabilities", 0, "permitted, effective, inheritable empty")                               \
  X(DUMPABLE, "not dumpable", 0, "no ptrace, no core, /proc files owned by root")                             \
  X(PARENT_DEATH, "parent death", 0, "SIGKILL when the parent ends")                                          \
  X(NO_NEW_PRIVS, "no new privileges", 0, "exec cannot raise privileges")                                     \
  X(LANDLOCK, "landlock", 0,                                                                                  \
    "no file system access, no TCP bind or connect, no signals outside; where the kernel has it")             \
  X(MDWE, "memory deny write execute", 0, "no writable memory becomes executable; where the kernel has it")   \
  X(FILTER, "system call filter", 0, "seccomp, default kill")

enum confinement_step {
#define X(symbol, name, root, does) STEP_##symbol,
  CONFINEMENT_STEPS(X)
#undef X
    STEP_COUNT
};

const char *confinement_step_name(unsigned step);
bool confinement_step_needs_root(unsigned step);

struct confine_options {
  enum role role;
  bool best_effort; /* waive the steps that need root, when they fail for want of it, and no other */
  bool namespaced;  /* the parent made the namespaces */
  uid_t uid;        /* to become; equal to the present one without root */
  gid_t gid;
  unsigned descriptors; /* RLIMIT_NOFILE */
};

struct confine_result {
  uint32_t done; /* bits 1 << enum confinement_step; a step the kernel lacks (landlock, mdwe) is in neither */
  uint32_t waived;
  enum confinement_step failed; /* when confine_self fails */
  char what[160];               /* and what happened, with errno's text */
};

/* Runs the steps in DESIGN order, verifies each by trying what must now fail, installs the role's filter last, checks
   it by mode and canary. 0, or -errno with `ret` telling; then the process must end with exit code 4. */
int confine_self(const struct confine_options *options, struct confine_result *ret);

/* Writes the role's filter program (BPF) into `fd`, for the check that probe and product install the same one.
   0 or -errno. */
int confine_export_filter(enum role role, int fd);

/* Prints the table of a role: call, constraint, reason. For policy/README.md and auditors. */
void confine_describe(enum role role, FILE *stream);

/* The parent: keeps only the capabilities that its work needs, and installs its own filter. `root`: running as uid 0.
   0 or -errno with ret telling as above. */
int confine_parent(bool root, struct confine_result *ret);
