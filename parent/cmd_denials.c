#include "parent/cmd_denials.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "parent/cmd_run.h"
#include "parent/denial.h"
#include "policy/config/config.h"
#include "shared/descriptors.h"

#define DEFAULT_CONFIG "/etc/sallyport/sallyport.yaml"
#define DEFAULT_LAST 50

struct request {
  char *path; /* of the audit log; owned */
  enum denial_format format;
  unsigned long last; /* how many of the past ones */
  bool follow;
};

static void usage(FILE *stream)
{
  fputs("Usage: sallyport denials [--config FILE | --audit FILE] [--last N] [--json] [--follow]\n"
        "\n"
        "Shows what was refused: when, to whom, what, by which rule, and the entry that would permit it.\n"
        "\n"
        "  -c, --config FILE   configuration that names the audit log (default " DEFAULT_CONFIG ")\n"
        "  -a, --audit FILE    the audit log itself\n"
        "  -n, --last N        the last N refusals (default 50; 0: none of the past)\n"
        "  -j, --json          one JSON object a line, with \"permitted_by\"\n"
        "  -f, --follow        go on with those to come\n"
        "  -h, --help          this text\n",
        stream);
}

/* Where each of the last N refusals begins, in a ring. */
struct ring {
  long *offsets;
  size_t room;
  size_t count;
};

static int find_last(FILE *log, struct ring *ring)
{
  char *line = NULL;
  size_t size = 0;
  long offset = ftell(log);
  for (ssize_t length; (length = getline(&line, &size, log)) > 0; offset = ftell(log))
    if (ring->room > 0 && line[length - 1] == '\n' && denial_is_one(line, (size_t)length))
      ring->offsets[ring->count++ % ring->room] = offset;
  free(line);
  return ferror(log) ? -EIO : 0;
}

static void print_found(FILE *log, const struct ring *ring, enum denial_format format)
{
  char *line = NULL;
  size_t size = 0;
  size_t shown = ring->count < ring->room ? ring->count : ring->room;
  for (size_t i = ring->count - shown; i < ring->count; i++) {
    if (fseek(log, ring->offsets[i % ring->room], SEEK_SET) < 0)
      break;
    ssize_t length = getline(&line, &size, log);
    if (length > 0)
      denial_print(line, (size_t)length, format, stdout);
  }
  free(line);
}

static int print_past(FILE *log, const struct request *request)
{
  struct ring ring = {.room = request->last};
  ring.offsets = calloc(ring.room + 1, sizeof *ring.offsets);
  if (!ring.offsets)
    return -ENOMEM;
  int failed = find_last(log, &ring);
  long end = ftell(log);
  if (failed == 0)
    print_found(log, &ring, request->format);
  free(ring.offsets);
  return failed == 0 && fseek(log, end, SEEK_SET) < 0 ? -errno : failed;
}

/* Prints whole lines from here on; what is not whole yet is left for the next time. */
static void print_new(FILE *log, enum denial_format format)
{
  char *line = NULL;
  size_t size = 0;
  clearerr(log);
  long offset = ftell(log);
  for (ssize_t length; (length = getline(&line, &size, log)) > 0; offset = ftell(log)) {
    if (line[length - 1] != '\n')
      break;
    denial_print(line, (size_t)length, format, stdout);
  }
  fseek(log, offset, SEEK_SET);
  free(line);
  fflush(stdout);
}

static bool is_same_file(FILE *log, const char *path)
{
  struct stat opened, named;
  return fstat(fileno(log), &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

/* Waits for a change of the file or of its folder (a log that is rotated away comes again under its name). */
static int wait_for_change(int watch)
{
  char events[sizeof(struct inotify_event) + NAME_MAX + 1] __attribute__((aligned(8)));
  return read(watch, events, sizeof events) < 0 && errno != EINTR ? -errno : 0;
}

static int watch_file(const char *path)
{
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/');
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
  cleanup_fd int watch = inotify_init1(IN_CLOEXEC);
  if (watch < 0 || inotify_add_watch(watch, folder, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
    return -errno;
  return steal_fd(&watch);
}

static int follow(FILE **log, const struct request *request)
{
  cleanup_fd int watch = watch_file(request->path);
  if (watch < 0)
    return watch;
  for (;;) {
    print_new(*log, request->format);
    if (!is_same_file(*log, request->path)) {
      FILE *next = fopen(request->path, "re");
      if (next) {
        fclose(*log);
        *log = next;
        continue;
      }
    }
    int failed = wait_for_change(watch);
    if (failed < 0)
      return failed;
  }
}

static int audit_path_of(const char *config_path, char **ret)
{
  struct config *config;
  struct config_report report;
  int loaded = config_load(config_path, &config, &report);
  if (loaded < 0)
    config_report_print(&report, stderr);
  config_report_clear(&report);
  if (loaded < 0)
    return loaded;
  *ret = strdup(config->audit);
  config_free(config);
  return *ret ? 0 : -ENOMEM;
}

static int run(const struct request *request)
{
  FILE *log = fopen(request->path, "re");
  if (!log) {
    fprintf(stderr, "sallyport denials: audit log \"%s\": %s\n", request->path, strerror(errno));
    return EXIT_CODE_RUNTIME;
  }
  int failed = print_past(log, request);
  fflush(stdout);
  if (failed == 0 && request->follow)
    failed = follow(&log, request);
  fclose(log);
  if (failed < 0)
    fprintf(stderr, "sallyport denials: audit log \"%s\": %s\n", request->path, strerror(-failed));
  return failed < 0 ? EXIT_CODE_RUNTIME : 0;
}

static bool parse_count(const char *text, unsigned long *ret)
{
  char *end;
  errno = 0;
  *ret = strtoul(text, &end, 10);
  return !errno && *text >= '0' && *text <= '9' && !*end && *ret <= 1000000;
}

int cmd_denials(int argc, char **argv)
{
  static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"audit", required_argument, NULL, 'a'},
    {"last", required_argument, NULL, 'n'},
    {"json", no_argument, NULL, 'j'},
    {"follow", no_argument, NULL, 'f'},
    {"help", no_argument, NULL, 'h'},
    {0},
  };
  struct request request = {.last = DEFAULT_LAST};
  const char *config_path = DEFAULT_CONFIG, *audit = NULL;
  for (int option; (option = getopt_long(argc, argv, "c:a:n:jfh", options, NULL)) != -1;) {
    if (option == 'c') {
      config_path = optarg;
    } else if (option == 'a') {
      audit = optarg;
    } else if (option == 'j') {
      request.format = DENIAL_JSON;
    } else if (option == 'f') {
      request.follow = true;
    } else if (option != 'n' || !parse_count(optarg, &request.last)) {
      if (option == 'n')
        fputs("sallyport denials: --last wants a number up to 1000000\n", stderr);
      else
        usage(option == 'h' ? stdout : stderr);
      return option == 'h' ? 0 : EXIT_CODE_USAGE;
    }
  }
  if (optind < argc) {
    fputs("sallyport denials: unexpected argument; see sallyport denials --help\n", stderr);
    return EXIT_CODE_USAGE;
  }
  int found = audit ? ((request.path = strdup(audit)) ? 0 : -ENOMEM) : audit_path_of(config_path, &request.path);
  if (found < 0)
    return EXIT_CODE_CONFIGURATION;
  int code = run(&request);
  free(request.path);
  return code;
}
