#include "parent/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parent/spawn_child_side.h"
#include "shared/descriptors.h"
#include "shared/limits.h"

#define CHILD_NAMESPACES (CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)
#define CONFINE_TEXT_SIZE 160
#define MAP_TEXT_SIZE 64

#ifdef SALLYPORT_SANITIZER
/* Leaks are looked for by tracing oneself, and names by another process: neither is possible behind the filter. */
#define SANITIZER_ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0:symbolize=0", "UBSAN_OPTIONS=symbolize=0:print_stacktrace=0",
#else
#define SANITIZER_ENVIRONMENT
#endif

struct pipe_ends {
  int read;
  int write;
};

static void pipe_close(struct pipe_ends *pipe)
{
  descriptor_close(&pipe->read);
  descriptor_close(&pipe->write);
}

#define cleanup_pipe __attribute__((cleanup(pipe_close)))

static int pipe_make(struct pipe_ends *ret)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0)
    return -errno;
  *ret = (struct pipe_ends){.read = ends[0], .write = ends[1]};
  return 0;
}

static int write_file(pid_t pid, const char *name, const char *text)
{
  char path[MAP_TEXT_SIZE];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0)
    return -errno;
  return 0;
}

/* The child's user and group are the parent's own. Giving up setgroups is the condition for mapping a group. */
static int write_maps(pid_t pid)
{
  char map[MAP_TEXT_SIZE];
  int failed = write_file(pid, "setgroups", "deny");
  snprintf(map, sizeof map, "%u %u 1\n", geteuid(), geteuid());
  if (failed == 0)
    failed = write_file(pid, "uid_map", map);
  snprintf(map, sizeof map, "%u %u 1\n", getegid(), getegid());
  if (failed == 0)
    failed = write_file(pid, "gid_map", map);
  return failed;
}

/* What the child does with the descriptors: number by number below CHILD_LISTENER_FD_END. */
static int plan_descriptors(const struct spawn_request *request, int nothing, int plan[CHILD_LISTENER_FD_END])
{
  for (int number = 0; number < CHILD_LISTENER_FD_END; number++)
    plan[number] = nothing;
  plan[STDERR_FILENO] = request->log > 0 ? request->log : STDERR_FILENO;
  for (size_t i = 0; i < request->descriptor_count; i++) {
    const struct spawn_descriptor *descriptor = &request->descriptors[i];
    if (descriptor->number < CHILD_CHANNEL_FD || descriptor->number >= CHILD_LISTENER_FD_END || descriptor->fd < 0 ||
        plan[descriptor->number] != nothing)
      return -EINVAL;
    plan[descriptor->number] = descriptor->fd;
  }
  return 0;
}

/* The memory of this process is copied, its other threads are not: see spawn_child_side.h. */
static pid_t clone_child(unsigned long namespaces)
{
  return (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, NULL, NULL, NULL, 0UL);
}

/* Forbidden, forbidden to this one, or used up: namespaces cannot be had here. */
static bool namespaces_refused(int error)
{
  return error == EPERM || error == EACCES || error == ENOSPC || error == EUSERS || error == EINVAL;
}

/* Waits for exec: the pipe closes with it. Else the child has written why not. 0 or -errno. */
static int wait_for_exec(int report)
{
  int error = 0;
  ssize_t size;
  do
    size = read(report, &error, sizeof error);
  while (size < 0 && errno == EINTR);
  return size == (ssize_t)sizeof error ? -error : 0;
}

static void kill_and_wait(pid_t pid)
{
  kill(pid, SIGKILL);
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    ;
}

/* One attempt. 0 with *ret_pid, or -errno; *ret_refused: it was clone that failed. */
static int start(const struct spawn_request *request, const int plan[CHILD_LISTENER_FD_END], bool namespaced,
                 pid_t *ret_pid, bool *ret_refused)
{
  cleanup_pipe struct pipe_ends go = {-1, -1};
  cleanup_pipe struct pipe_ends report = {-1, -1};
  int failed = pipe_make(&go);
  if (failed == 0)
    failed = pipe_make(&report);
  if (failed < 0)
    return failed;

  bool rootless = geteuid() != 0;
  char confine[CONFINE_TEXT_SIZE];
  snprintf(confine, sizeof confine, "SALLYPORT_CONFINE=best-effort=%d namespaced=%d uid=%u gid=%u descriptors=%u",
           request->best_effort, namespaced, request->uid, request->gid, request->descriptors_max);
  const char *environment[] = {confine, "TZ=UTC0", SANITIZER_ENVIRONMENT NULL};
  const char *arguments[] = {request->title, NULL};
  const struct child_side side = {
    .binary = request->binary,
    .arguments = arguments,
    .environment = environment,
    .plan = plan,
    .go = go.read,
    .go_other_end = go.write,
    .report = report.write,
    .raise_capabilities = rootless && namespaced,
  };

  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  unsigned long namespaces = namespaced ? CHILD_NAMESPACES | (rootless ? CLONE_NEWUSER : 0) : 0;
  pid_t pid = clone_child(namespaces);
  if (pid == 0)
    child_side_run(&side);
  failed = pid < 0 ? -errno : 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  *ret_refused = failed < 0;
  if (failed < 0)
    return failed;

  if (side.raise_capabilities)
    failed = write_maps(pid);
  descriptor_close(&report.write);
  if (failed == 0 && write(go.write, "", 1) != 1)
    failed = -errno;
  if (failed == 0)
    failed = wait_for_exec(report.read);
  if (failed < 0) {
    kill_and_wait(pid);
    return failed;
  }
  *ret_pid = pid;
  return 0;
}

int spawn_child(const struct spawn_request *request, pid_t *ret_pid)
{
  cleanup_fd int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0)
    return -errno;
  int plan[CHILD_LISTENER_FD_END];
  int failed = plan_descriptors(request, nothing, plan);
  if (failed < 0)
    return failed;
  bool refused = false;
  failed = start(request, plan, true, ret_pid, &refused);
  if (failed < 0 && refused && request->best_effort && namespaces_refused(-failed))
    failed = start(request, plan, false, ret_pid, &refused);
  return failed;
}

static int join_executable(const char *folder, size_t folder_length, const char *name, char **ret)
{
  char *path;
  if (asprintf(&path, "%.*s/%s", (int)folder_length, folder, name) < 0)
    return -ENOMEM;
  if (access(path, X_OK) < 0) {
    int error = errno;
    free(path);
    return -error;
  }
  *ret = path;
  return 0;
}

int spawn_find_binary(const char *name, char **ret)
{
  char own[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", own, sizeof own);
  if (length > 0 && (size_t)length < sizeof own) {
    const char *slash = memrchr(own, '/', (size_t)length);
    if (slash && join_executable(own, (size_t)(slash - own), name, ret) == 0)
      return 0;
  }
  return join_executable(SALLYPORT_LIBEXECDIR, strlen(SALLYPORT_LIBEXECDIR), name, ret);
}
