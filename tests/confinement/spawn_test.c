/* Starting a child: what is refused, what the child says of bad orders, and that it does not outlive its parent. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parent/spawn.h"
#include "shared/channel.h"
#include "shared/limits.h"
#include "tests/confinement/procfs.h"
#include "tests/confinement/stage.h"

#define PATIENCE_MS 20000
#define EXIT_CONFINEMENT 4

static struct spawn_request request_for(const char *binary)
{
  bool root = geteuid() == 0;
  return (struct spawn_request){
    .role = ROLE_WORKER,
    .binary = binary,
    .title = "sallyport: egress worker 0",
    .best_effort = !root,
    .uid = root ? UNPRIVILEGED : geteuid(),
    .gid = root ? UNPRIVILEGED : getegid(),
    .descriptors_max = 256,
  };
}

Test(spawn, missing_binary)
{
  struct spawn_request request = request_for("/nonexistent/sallyport-worker");
  pid_t pid = 0;
  cr_expect_eq(spawn_child(&request, &pid), -ENOENT);
  cr_expect_eq(pid, 0);
  cr_expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a process was left behind");
}

Test(spawn, not_a_program)
{
  struct spawn_request request = request_for("/etc/passwd");
  pid_t pid;
  cr_expect_eq(spawn_child(&request, &pid), -EACCES);
}

Test(spawn, numbers_of_descriptors_are_checked)
{
  static const struct spawn_descriptor wrong[][2] = {
    {{0, 2}, {0, CHILD_CHANNEL_FD}},
    {{0, CHILD_LISTENER_FD_END}, {0, CHILD_CHANNEL_FD}},
    {{-1, CHILD_CHANNEL_FD}, {0, CHILD_COUNTERS_FD}},
    {{0, CHILD_CHANNEL_FD}, {0, CHILD_CHANNEL_FD}},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct spawn_request request = request_for("/bin/true");
    request.descriptors = wrong[i];
    request.descriptor_count = 2;
    pid_t pid;
    cr_expect_eq(spawn_child(&request, &pid), -EINVAL, "case %zu", i);
  }
}

Test(spawn, binaries_are_found_beside_the_executable)
{
  char *path = NULL;
  cr_assert_eq(spawn_find_binary("probe-worker", &path), 0);
  cr_expect_eq(strncmp(path, stage_folder(), strlen(stage_folder())), 0, "%s", path);
  free(path);
  cr_expect_eq(spawn_find_binary("probe-of-nothing", &path), -ENOENT);
}

static volatile sig_atomic_t handled;

static void handler(int number)
{
  handled = number;
}

/* A handler of the parent's that ran in the child would write into the parent's event loop. */
Test(spawn, signals_start_afresh)
{
  stage_prepare();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGUSR1, handler);
  sigset_t blocked, now;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  cr_assert(sigprocmask(SIG_BLOCK, &blocked, NULL) == 0);
  struct probe probe;
  cr_assert(probe_start(ROLE_WORKER, &probe) == 0);
  cr_expect_str_eq(procfs_status(probe.pid, "SigBlk"), "0000000000000000");
  cr_expect_str_eq(procfs_status(probe.pid, "SigIgn"), "0000000000000000");
  cr_assert(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
  cr_expect(sigismember(&now, SIGUSR2) && !sigismember(&now, SIGUSR1), "the parent's own mask was changed");
  cr_expect_eq(handled, 0);
  (void)probe_stop(&probe);
}

static void exec_with_order(const char *order, int channel)
{
  char path[PATH_MAX], variable[256];
  snprintf(path, sizeof path, "%sprobe-worker", stage_folder());
  snprintf(variable, sizeof variable, "SALLYPORT_CONFINE=%s", order ? order : "");
  char *environment[] = {order ? variable : NULL, NULL};
  char *arguments[] = {path, NULL};
  (void)dup2(open("/dev/null", O_RDWR), STDERR_FILENO);
  (void)dup2(channel, CHILD_CHANNEL_FD);
  execve(path, arguments, environment);
  _exit(1);
}

/* Runs the probe as it would be started by hand. Returns its wait status; *ret_ready: it said that it is confined. */
static int start_by_hand(const char *order, bool *ret_ready)
{
  int ours, theirs;
  cr_assert(channel_pair(&ours, &theirs) == 0);
  pid_t pid = fork();
  if (pid == 0)
    exec_with_order(order, theirs);
  close(theirs);
  struct pollfd look = {.fd = ours, .events = POLLIN};
  struct msg_ready ready;
  cr_assert(poll(&look, 1, PATIENCE_MS) == 1);
  *ret_ready = read(ours, &ready, sizeof ready) == sizeof ready;
  close(ours);
  int status;
  cr_assert(waitpid(pid, &status, 0) == pid);
  return status;
}

/* They must come exactly as spawn writes them. */
Test(start, wrong_orders_end_with_exit_code_4)
{
  static const char *const wrong[] = {
    NULL,
    "",
    "best-effort=1",
    "best-effort=2 namespaced=0 uid=65534 gid=65534 descriptors=256",
    "best-effort=1 namespaced=0 uid=65534 gid=65534 descriptors=",
    "best-effort=1 namespaced=0 uid=65534 gid=65534 descriptors=256 ",
    "best-effort=1 namespaced=0 uid=65534 gid=65534 descriptors=256x",
    " best-effort=1 namespaced=0 uid=65534 gid=65534 descriptors=256",
    "best-effort=1  namespaced=0 uid=65534 gid=65534 descriptors=256",
    "best-effort=1,namespaced=0 uid=65534 gid=65534 descriptors=256",
    "best-effort=1 uid=65534 namespaced=0 gid=65534 descriptors=256",
    "best-effort=1 namespaced=0 uid=+65534 gid=65534 descriptors=256",
    "best-effort=1 namespaced=0 uid= 65534 gid=65534 descriptors=256",
    "best-effort=1 namespaced=0 uid=4294967295 gid=65534 descriptors=256",
    "best-effort=1 namespaced=0 uid=18446744073709617150 gid=65534 descriptors=256",
    "best-effort=1 namespaced=0 uid=65534 gid=65534 descriptors=1048577",
    /* understood, and refused by confinement itself */
    "best-effort=1 namespaced=0 uid=0 gid=65534 descriptors=256",
    "best-effort=1 namespaced=0 uid=65534 gid=0 descriptors=256",
    "best-effort=1 namespaced=1 uid=65534 gid=65534 descriptors=256",
    "best-effort=0 namespaced=0 uid=65534 gid=65534 descriptors=256",
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    bool ready = true;
    int status = start_by_hand(wrong[i], &ready);
    cr_expect(!ready && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CONFINEMENT, "\"%s\": status %#x",
              wrong[i] ? wrong[i] : "(none)", status);
  }
}

/* The counterpart of the test above: but for what is wrong in them, they are obeyed. */
Test(start, right_orders_are_obeyed)
{
  bool ready = false;
  int status = start_by_hand("best-effort=1 namespaced=0 uid=65534 gid=65534 descriptors=256", &ready);
  cr_expect(ready && WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
}

/* The probe waits for its channel, whose other end a sibling keeps open: only the signal can end it. */
Test(spawn, children_end_with_the_parent)
{
  stage_prepare();
  int answers[2];
  cr_assert(pipe(answers) == 0);
  cr_assert(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
  pid_t parent = fork();
  if (parent == 0) {
    struct probe probe;
    if (probe_start(ROLE_WORKER, &probe) < 0)
      _exit(1);
    if (fork() == 0) /* keeps the channel */
      for (;;)
        pause();
    if (write(answers[1], &probe.pid, sizeof probe.pid) < 0)
      _exit(1);
    for (;;)
      pause();
  }
  pid_t child;
  cr_assert(read(answers[0], &child, sizeof child) == sizeof child);
  struct pollfd gone = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
  cr_assert(gone.fd >= 0);
  cr_expect_eq(poll(&gone, 1, 0), 0, "it lives");
  kill(parent, SIGKILL);
  cr_expect_eq(poll(&gone, 1, PATIENCE_MS), 1, "it outlives its parent");
  cr_expect(waitpid(parent, NULL, 0) == parent);
  /* What was orphaned came to us. */
  pid_t left[4];
  size_t count = procfs_children(getpid(), left, 4);
  for (size_t i = 0; i < count; i++)
    kill(left[i], SIGKILL);
  while (waitpid(-1, NULL, 0) > 0)
    ;
}
