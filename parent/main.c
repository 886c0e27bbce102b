/* The command line: one binary, subcommands. */
#include <stdio.h>
#include <string.h>

#include "parent/cmd_check.h"
#include "parent/cmd_denials.h"
#include "parent/cmd_run.h"

static const struct command {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *summary;
} commands[] = {
  {"run", cmd_run, "start the gatehouse in the foreground"},
  {"check", cmd_check, "would this host and port be allowed, and by which rule?"},
  {"check-config", cmd_check_config, "check a configuration file, every error at once"},
  {"denials", cmd_denials, "what was refused, why, and the entry that would permit it"},
};

static void usage(FILE *stream)
{
  fputs("Usage: sallyport COMMAND [OPTIONS]\n\n", stream);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    fprintf(stream, "  %-14s %s\n", commands[i].name, commands[i].summary);
  fputs("  --version      print the version\n"
        "\n"
        "sallyport COMMAND --help tells more.\n",
        stream);
}

int main(int argc, char **argv)
{
  if (argc < 2) {
    usage(stderr);
    return EXIT_CODE_USAGE;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
    usage(stdout);
    return 0;
  }
  if (strcmp(argv[1], "--version") == 0) {
    puts("sallyport " SALLYPORT_VERSION);
    return 0;
  }
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (strcmp(argv[1], commands[i].name) == 0)
      return commands[i].run(argc - 1, argv + 1);
  fprintf(stderr, "sallyport: there is no such command; sallyport --help lists them\n");
  return EXIT_CODE_USAGE;
}
