#include "parent/cmd_run.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parent/daemon.h"
#include "policy/config/config.h"
#include "shared/log.h"

#define DEFAULT_CONFIG "/etc/sallyport/sallyport.yaml"

static void usage(FILE *stream)
{
  fputs("Usage: sallyport run [--config FILE] [--ready-fd N]\n"
        "\n"
        "Runs in the foreground and logs to standard error.\n"
        "\n"
        "  -c, --config FILE   configuration (default " DEFAULT_CONFIG ")\n"
        "      --ready-fd N    write a newline to descriptor N when all listeners accept\n"
        "  -h, --help          this text\n"
        "\n"
        "Signals: TERM or INT drains (a second one ends at once), USR1 logs the counters.\n"
        "Exit codes: 0 clean, 1 runtime failure, 2 usage, 3 configuration, 4 confinement.\n",
        stream);
}

static int parse_descriptor(const char *text)
{
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno || *end || end == text || value < 3 || value > 65535 || fcntl((int)value, F_GETFD) < 0)
    return -1;
  return (int)value;
}

int cmd_run(int argc, char **argv)
{
  static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"ready-fd", required_argument, NULL, 'r'},
    {"help", no_argument, NULL, 'h'},
    {0},
  };
  const char *path = DEFAULT_CONFIG;
  int ready_fd = -1;
  for (int option; (option = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
    if (option == 'c') {
      path = optarg;
    } else if (option == 'r') {
      ready_fd = parse_descriptor(optarg);
      if (ready_fd < 0) {
        fprintf(stderr, "sallyport run: --ready-fd wants the number of an open descriptor above 2\n");
        return EXIT_CODE_USAGE;
      }
    } else {
      usage(option == 'h' ? stdout : stderr);
      return option == 'h' ? 0 : EXIT_CODE_USAGE;
    }
  }
  if (optind < argc) {
    fprintf(stderr, "sallyport run: unexpected argument; see sallyport run --help\n");
    return EXIT_CODE_USAGE;
  }

  struct config *config;
  struct config_report report;
  int loaded = config_load(path, &config, &report);
  config_report_print(&report, stderr);
  config_report_clear(&report);
  if (loaded < 0)
    return EXIT_CODE_CONFIGURATION;
  log_setup("parent", (enum log_level)config->log_level, config->log_json);
  int code = daemon_run(config, ready_fd);
  config_free(config);
  return code;
}
