/* What the kernel is asked to refuse from now on, whoever asks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/confinement/steps.h"
#include "shared/descriptors.h"

/* linux/landlock.h and linux/prctl.h of Debian 12 end with Linux 6.1. */
#define LANDLOCK_QUERY_VERSION 1U
#define LANDLOCK_FS_ABI1 UINT64_C(0x1fff) /* execute to make_sym */
#define LANDLOCK_FS_REFER (UINT64_C(1) << 13)
#define LANDLOCK_FS_TRUNCATE (UINT64_C(1) << 14)
#define LANDLOCK_FS_IOCTL_DEV (UINT64_C(1) << 15)
#define LANDLOCK_NET_BIND_CONNECT_TCP UINT64_C(3)
#define LANDLOCK_SCOPE_ABSTRACT_SOCKET_AND_SIGNAL UINT64_C(3)
#define MDWE_SET 65
#define MDWE_GET 66
#define MDWE_REFUSE_EXEC_GAIN 1UL

struct landlock_ruleset {
  uint64_t file_system;
  uint64_t network;
  uint64_t scope;
};

/* What is denied, by the first ABI that knows it; ruleset_bytes is the size of the struct there. */
static const struct {
  int abi;
  struct landlock_ruleset denied;
  size_t ruleset_bytes;
} landlock_abis[] = {
  {1, {.file_system = LANDLOCK_FS_ABI1}, offsetof(struct landlock_ruleset, network)},
  {2, {.file_system = LANDLOCK_FS_REFER}, offsetof(struct landlock_ruleset, network)},
  {3, {.file_system = LANDLOCK_FS_TRUNCATE}, offsetof(struct landlock_ruleset, network)},
  {4, {.network = LANDLOCK_NET_BIND_CONNECT_TCP}, offsetof(struct landlock_ruleset, scope)},
  {5, {.file_system = LANDLOCK_FS_IOCTL_DEV}, offsetof(struct landlock_ruleset, scope)},
  {6, {.scope = LANDLOCK_SCOPE_ABSTRACT_SOCKET_AND_SIGNAL}, sizeof(struct landlock_ruleset)},
};

int dumpable_clear(const struct step_context *context)
{
  return prctl(PR_SET_DUMPABLE, 0UL, 0, 0, 0) < 0 ? step_failed(context->result, errno, "PR_SET_DUMPABLE") : 0;
}

int dumpable_verify(const struct step_context *context)
{
  return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : step_unsafe(context->result, "still dumpable");
}

int parent_death_set(const struct step_context *context)
{
  return prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0, 0, 0) < 0
           ? step_failed(context->result, errno, "PR_SET_PDEATHSIG")
           : 0;
}

/* A parent that died before is found by the channel's end: getppid() says 0 in a namespace of its own anyway. */
int parent_death_verify(const struct step_context *context)
{
  int signal_number = 0;
  return prctl(PR_GET_PDEATHSIG, &signal_number, 0, 0, 0) == 0 && signal_number == SIGKILL
           ? 0
           : step_unsafe(context->result, "no parent-death signal");
}

int no_new_privs_set(const struct step_context *context)
{
  return prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0, 0, 0) < 0 ? step_failed(context->result, errno, "PR_SET_NO_NEW_PRIVS") : 0;
}

int no_new_privs_verify(const struct step_context *context)
{
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : step_unsafe(context->result, "privileges can be gained");
}

int landlock_deny(const struct step_context *context)
{
  long abi = syscall(SYS_landlock_create_ruleset, NULL, 0UL, LANDLOCK_QUERY_VERSION);
  if (abi < 0)
    return errno == ENOSYS || errno == EOPNOTSUPP ? STEP_UNKNOWN_TO_KERNEL
                                                  : step_failed(context->result, errno, "landlock's version");
  struct landlock_ruleset denied = {0};
  size_t bytes = 0;
  for (size_t i = 0; i < sizeof landlock_abis / sizeof *landlock_abis && landlock_abis[i].abi <= abi; i++) {
    denied.file_system |= landlock_abis[i].denied.file_system;
    denied.network |= landlock_abis[i].denied.network;
    denied.scope |= landlock_abis[i].denied.scope;
    bytes = landlock_abis[i].ruleset_bytes;
  }
  cleanup_fd int ruleset = (int)syscall(SYS_landlock_create_ruleset, &denied, bytes, 0U);
  if (ruleset < 0)
    return step_failed(context->result, errno, "landlock ruleset");
  /* No rule is added: nothing is allowed. */
  if (syscall(SYS_landlock_restrict_self, ruleset, 0U) < 0)
    return step_failed(context->result, errno, "landlock_restrict_self");
  return 0;
}

int landlock_verify(const struct step_context *context)
{
  cleanup_fd int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 && errno == EACCES ? 0 : step_unsafe(context->result, "the root can be listed");
}

int mdwe_set(const struct step_context *context)
{
  if (prctl(MDWE_SET, MDWE_REFUSE_EXEC_GAIN, 0UL, 0UL, 0UL) == 0)
    return 0;
  return errno == EINVAL ? STEP_UNKNOWN_TO_KERNEL : step_failed(context->result, errno, "memory-deny-write-execute");
}

/* Tried with mprotect: the parent's filter, which this process inherits, kills for memory that is writable and
   executable at once. */
int mdwe_verify(const struct step_context *context)
{
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return step_failed(context->result, errno, "memory for the try");
  bool executable = mprotect(page, size, PROT_READ | PROT_EXEC) == 0;
  munmap(page, size);
  if (executable || (prctl(MDWE_GET, 0UL, 0UL, 0UL, 0UL) & (int)MDWE_REFUSE_EXEC_GAIN) == 0)
    return step_unsafe(context->result, "memory that was written can become executable");
  return 0;
}
