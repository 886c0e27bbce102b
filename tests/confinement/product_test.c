/* The shipped binaries as they run: what /proc says of each, and that the filters in force are those of the tables,
   which are also those of the probes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/limits.h"
#include "tests/confinement/procfs.h"
#include "tests/confinement/program.h"
#include "tests/confinement/stage.h"

#define PATIENCE_MS 30000
#define CHILDREN 3 /* two workers and the resolver */
#define NO_CAPABILITIES "0000000000000000"

struct product {
  char folder[64];
  pid_t parent;
  pid_t children[CHILDREN + 1];
  size_t count;
};

static unsigned free_port(void)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
  cr_assert(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
  close(fd);
  return ntohs(address.sin_port);
}

static void write_config(struct product *product)
{
  char path[PATH_MAX];
  snprintf(product->folder, sizeof product->folder, "/tmp/sallyport-confinement-XXXXXX");
  cr_assert(mkdtemp(product->folder) != NULL);
  snprintf(path, sizeof path, "%s/sallyport.yaml", product->folder);
  FILE *file = fopen(path, "we");
  cr_assert(file);
  fprintf(file,
          "user: nobody\nconfinement: %s\naudit: %s/audit.jsonl\nworkers: 2\n"
          "resolver:\n  nameservers: [ \"127.0.0.1:9\" ]\n"
          "policies:\n  - name: some\n    allow: [ example.org ]\n"
          "egress:\n  - listen: 127.0.0.1:%u\n    policy: some\n",
          geteuid() == 0 ? "required" : "best-effort", product->folder, free_port());
  cr_assert(fclose(file) == 0);
}

static void remove_file(const struct product *product, const char *name)
{
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", product->folder, name);
  (void)unlink(path);
}

static void exec_product(const struct product *product, int ready)
{
  char binary[PATH_MAX], config[PATH_MAX], log[PATH_MAX], number[16];
  snprintf(binary, sizeof binary, "%s../../sallyport", stage_folder());
  snprintf(config, sizeof config, "%s/sallyport.yaml", product->folder);
  snprintf(number, sizeof number, "%d", ready);
  snprintf(log, sizeof log, "%s/log", product->folder);
  (void)dup2(open(log, O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
  execl(binary, binary, "run", "--config", config, "--ready-fd", number, NULL);
  _exit(127);
}

static struct product product_start(void)
{
  struct product product = {0};
  int ends[2];
  write_config(&product);
  cr_assert(pipe(ends) == 0);
  product.parent = fork();
  if (product.parent == 0)
    exec_product(&product, ends[1]);
  close(ends[1]);
  struct pollfd ready = {.fd = ends[0], .events = POLLIN};
  char byte = 0;
  cr_assert(poll(&ready, 1, PATIENCE_MS) == 1 && read(ends[0], &byte, 1) == 1, "it did not start");
  close(ends[0]);
  product.count = procfs_children(product.parent, product.children, CHILDREN + 1);
  cr_assert_eq(product.count, CHILDREN);
  return product;
}

static void product_stop(struct product *product)
{
  int status;
  kill(product->parent, SIGTERM);
  cr_expect(waitpid(product->parent, &status, 0) == product->parent && WIFEXITED(status) && WEXITSTATUS(status) == 0,
            "status %#x", status);
  remove_file(product, "audit.jsonl");
  remove_file(product, "log");
  remove_file(product, "sallyport.yaml");
  cr_expect(rmdir(product->folder) == 0);
}

static enum role role_of(pid_t pid)
{
  return strstr(procfs_content(pid, "cmdline"), "sallyport: resolver") ? ROLE_RESOLVER : ROLE_WORKER;
}

#define EXPECT_STATUS(pid, key, value) cr_expect_str_eq(procfs_status(pid, key), value, key)

Test(product, every_child_is_confined)
{
  struct product product = product_start();
  size_t workers = 0;
  for (size_t i = 0; i < product.count; i++) {
    pid_t pid = product.children[i];
    workers += role_of(pid) == ROLE_WORKER;
    EXPECT_STATUS(pid, "Seccomp", "2");
    EXPECT_STATUS(pid, "Seccomp_filters", "2");
    EXPECT_STATUS(pid, "NoNewPrivs", "1");
    EXPECT_STATUS(pid, "CapPrm", NO_CAPABILITIES);
    EXPECT_STATUS(pid, "CapEff", NO_CAPABILITIES);
    EXPECT_STATUS(pid, "CapInh", NO_CAPABILITIES);
    EXPECT_STATUS(pid, "CapAmb", NO_CAPABILITIES);
    if (geteuid() != 0)
      continue;
    EXPECT_STATUS(pid, "CapBnd", NO_CAPABILITIES);
    EXPECT_STATUS(pid, "Uid", "65534\t65534\t65534\t65534");
    EXPECT_STATUS(pid, "Groups", "");
    cr_expect_eq(procfs_entries(pid, "root"), 0);
  }
  cr_expect_eq(workers, CHILDREN - 1);
  product_stop(&product);
}

Test(product, parent_is_reduced)
{
  struct product product = product_start();
  EXPECT_STATUS(product.parent, "Seccomp", "2");
  EXPECT_STATUS(product.parent, "NoNewPrivs", "1");
  EXPECT_STATUS(product.parent, "CapEff", geteuid() == 0 ? "00000000002001e0" : NO_CAPABILITIES);
  product_stop(&product);
}

static void expect_namespaces(pid_t pid, pid_t parent)
{
  static const char *const names[] = {"ns/net", "ns/mnt", "ns/pid", "ns/ipc", "ns/uts"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char others[64];
    snprintf(others, sizeof others, "%s", procfs_link(parent, names[i]));
    cr_expect_str_neq(procfs_link(pid, names[i]), others, "%s", names[i]);
  }
}

/* By what it is, each number is accounted for: nothing of the parent's has come along. */
static void expect_descriptors(pid_t pid, enum role role)
{
  for (int number = 0; number < CHILD_LISTENER_FD_END; number++) {
    char name[32];
    snprintf(name, sizeof name, "fd/%d", number);
    const char *target = procfs_link(pid, name);
    bool worker = role == ROLE_WORKER;
    if (number == STDERR_FILENO)
      continue;
    if (number == CHILD_CHANNEL_FD || (worker && number == CHILD_LISTENER_FD_FIRST))
      cr_expect(strncmp(target, "socket:", 7) == 0, "%d is %s", number, target);
    else if (worker && number == CHILD_COUNTERS_FD)
      cr_expect(strncmp(target, "/memfd:", 7) == 0, "%d is %s", number, target);
    else
      cr_expect_str_eq(target, "/dev/null", "%d is %s", number, target);
  }
  /* Above are the event loop's, its wakeup's and the pipes for bulk: neither files nor sockets. */
  for (int number = CHILD_LISTENER_FD_END; number < 4 * CHILD_LISTENER_FD_END; number++) {
    char name[32];
    snprintf(name, sizeof name, "fd/%d", number);
    const char *target = procfs_link(pid, name);
    bool fine = !*target || strncmp(target, "pipe:", 5) == 0 || strncmp(target, "anon_inode:[event", 17) == 0;
    cr_expect(fine, "%d is %s", number, target);
  }
}

Test(product, namespaces_and_descriptors)
{
  if (geteuid() != 0)
    cr_skip("needs root to look");
  struct product product = product_start();
  for (size_t i = 0; i < product.count; i++) {
    expect_namespaces(product.children[i], product.parent);
    expect_descriptors(product.children[i], role_of(product.children[i]));
  }
  product_stop(&product);
}

static void expect_filter(pid_t pid, unsigned long index, enum role role, const char *whose)
{
  static struct program installed, exported;
  int failed = program_installed(pid, index, &installed);
  cr_assert(failed == 0, "%s: the kernel does not tell: %s", whose, strerror(-failed));
  cr_assert(program_export(role, &exported) == 0);
  cr_expect(program_equal(&installed, &exported), "%s has another filter: %zu instructions, the table makes %zu", whose,
            installed.count, exported.count);
}

static bool kernel_tells(pid_t pid)
{
  static struct program installed;
  int failed = program_installed(pid, 0, &installed);
  return failed != -EINVAL && failed != -EIO && failed != -EACCES && failed != -EPERM;
}

Test(product, filters_in_force_are_those_of_the_tables)
{
  if (geteuid() != 0)
    cr_skip("needs root to ask for filters");
  struct product product = product_start();
  bool tells = kernel_tells(product.parent);
  if (tells)
    expect_filter(product.parent, 0, ROLE_PARENT, "the parent");
  for (size_t i = 0; tells && i < product.count; i++) {
    enum role role = role_of(product.children[i]);
    expect_filter(product.children[i], 0, ROLE_PARENT, "a child, before its own,");
    expect_filter(product.children[i], 1, role, role_name(role));
  }
  product_stop(&product);
  if (!tells)
    cr_skip("this kernel does not tell installed filters, or not to a process that has one itself");
}

Test(product, probes_have_the_same_filters)
{
  if (geteuid() != 0)
    cr_skip("needs root to ask for filters");
  stage_prepare();
  for (unsigned role = ROLE_WORKER; role <= ROLE_RESOLVER; role++) {
    struct probe probe;
    cr_assert(probe_start(role, &probe) == 0);
    if (kernel_tells(probe.pid))
      expect_filter(probe.pid, 0, role, role_name(role));
    (void)probe_stop(&probe);
  }
}
