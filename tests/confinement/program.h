/* Filter programs: as they are exported, as they are installed in a process, and what they answer. */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/confinement/confine.h"

#define PROGRAM_INSTRUCTIONS_MAX 4096

struct program {
  struct sock_filter instructions[PROGRAM_INSTRUCTIONS_MAX];
  size_t count;
};

/* What confine_export_filter writes. 0 or -errno. */
int program_export(enum role role, struct program *ret);

/* What the kernel has for the process; index 0 is the one that was installed first. Needs root; stops the process for a
   moment. 0, -ENOENT past the last, or -errno (-EINVAL, -EIO: this kernel does not tell). */
int program_installed(pid_t pid, unsigned long index, struct program *ret);

bool program_equal(const struct program *one, const struct program *other);

/* The SECCOMP_RET_ value. */
uint32_t program_run(const struct program *program, const struct seccomp_data *call);
