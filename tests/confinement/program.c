#include "tests/confinement/program.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/descriptors.h"

int program_export(enum role role, struct program *ret)
{
  cleanup_fd int fd = memfd_create("filter", MFD_CLOEXEC);
  if (fd < 0)
    return -errno;
  int failed = confine_export_filter(role, fd);
  if (failed < 0)
    return failed;
  ssize_t size = pread(fd, ret->instructions, sizeof ret->instructions, 0);
  if (size <= 0 || (size_t)size % sizeof *ret->instructions != 0)
    return -EIO;
  ret->count = (size_t)size / sizeof *ret->instructions;
  return 0;
}

static long read_filter(pid_t pid, unsigned long index, struct program *ret)
{
  long count = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *)index, NULL);
  if (count > PROGRAM_INSTRUCTIONS_MAX) {
    errno = E2BIG;
    return -1;
  }
  return count < 0 ? count : ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *)index, ret->instructions);
}

int program_installed(pid_t pid, unsigned long index, struct program *ret)
{
  int status;
  if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
    return -errno;
  if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 || waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
    return -ECHILD;
  long count = read_filter(pid, index, ret);
  int error = errno;
  (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
  if (count < 0)
    return -error;
  ret->count = (size_t)count;
  return 0;
}

bool program_equal(const struct program *one, const struct program *other)
{
  return one->count == other->count &&
         memcmp(one->instructions, other->instructions, one->count * sizeof *one->instructions) == 0;
}

static bool jumps(const struct sock_filter *instruction, uint32_t accumulator)
{
  switch (instruction->code) {
  case BPF_JMP | BPF_JEQ | BPF_K:
    return accumulator == instruction->k;
  case BPF_JMP | BPF_JGT | BPF_K:
    return accumulator > instruction->k;
  case BPF_JMP | BPF_JGE | BPF_K:
    return accumulator >= instruction->k;
  default: /* JSET */
    return (accumulator & instruction->k) != 0;
  }
}

/* Only the instructions that libseccomp makes. Anything else answers ~0, which no test expects. */
uint32_t program_run(const struct program *program, const struct seccomp_data *call)
{
  uint32_t accumulator = 0;
  for (size_t at = 0; at < program->count; at++) {
    const struct sock_filter *instruction = &program->instructions[at];
    switch (instruction->code) {
    case BPF_LD | BPF_W | BPF_ABS:
      if (instruction->k + sizeof accumulator > sizeof *call)
        return UINT32_MAX;
      memcpy(&accumulator, (const char *)call + instruction->k, sizeof accumulator);
      break;
    case BPF_ALU | BPF_AND | BPF_K:
      accumulator &= instruction->k;
      break;
    case BPF_JMP | BPF_JA:
      at += instruction->k;
      break;
    case BPF_JMP | BPF_JEQ | BPF_K:
    case BPF_JMP | BPF_JGT | BPF_K:
    case BPF_JMP | BPF_JGE | BPF_K:
    case BPF_JMP | BPF_JSET | BPF_K:
      at += jumps(instruction, accumulator) ? instruction->jt : instruction->jf;
      break;
    case BPF_RET | BPF_K:
      return instruction->k;
    default:
      return UINT32_MAX;
    }
  }
  return UINT32_MAX;
}
