#include "parent/cmd_check.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "parent/check_addresses.h"
#include "parent/check_verdict.h"
#include "parent/cmd_run.h"
#include "policy/config/config.h"
#include "shared/text.h"

#define DEFAULT_CONFIG "/etc/sallyport/sallyport.yaml"
#define DEFAULT_PORT 443

struct arguments {
  const char *config;
  const char *policy; /* NULL: not named */
  const char *target; /* NULL: none */
};

#define SHOWN_SIZE 512

/* What came from the command line, fit for a terminal. */
static const char *shown(const char *text, char *ret)
{
  text_printable(text, strlen(text), ret, SHOWN_SIZE);
  return ret;
}

static void usage_check(FILE *stream)
{
  fputs("Usage: sallyport check [--config FILE] [--policy NAME] HOST[:PORT]\n"
        "\n"
        "Says whether HOST and PORT (443 when absent) would be allowed, by which rule, and what would permit it.\n"
        "An IPv6 address with a port is written in brackets.\n"
        "\n"
        "  -c, --config FILE   configuration (default " DEFAULT_CONFIG ")\n"
        "  -p, --policy NAME   policy (default: the only one, or that of the first egress listener)\n"
        "  -h, --help          this text\n"
        "\n"
        "Exit codes: 0 allow, 10 deny, 2 usage, 3 configuration.\n",
        stream);
}

static void usage_check_config(FILE *stream)
{
  fputs("Usage: sallyport check-config [--config FILE]\n"
        "\n"
        "Reads the configuration and the lists that it names, and reports every problem with file and line.\n"
        "\n"
        "  -c, --config FILE   configuration (default " DEFAULT_CONFIG ")\n"
        "  -h, --help          this text\n"
        "\n"
        "Exit codes: 0 no error (there may be warnings), 2 usage, 3 configuration.\n",
        stream);
}

/* -1 when the arguments can be used, else the exit code. */
static int parse_arguments(int argc, char **argv, bool with_target, void (*usage)(FILE *), struct arguments *ret)
{
  static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"policy", required_argument, NULL, 'p'},
    {"help", no_argument, NULL, 'h'},
    {0},
  };
  *ret = (struct arguments){.config = DEFAULT_CONFIG};
  optind = 0;
  for (int option; (option = getopt_long(argc, argv, with_target ? "c:p:h" : "c:h", options, NULL)) != -1;) {
    if (option == 'c') {
      ret->config = optarg;
    } else if (option == 'p' && with_target) {
      ret->policy = optarg;
    } else {
      usage(option == 'h' ? stdout : stderr);
      return option == 'h' ? 0 : EXIT_CODE_USAGE;
    }
  }
  if (argc - optind != (with_target ? 1 : 0)) {
    usage(stderr);
    return EXIT_CODE_USAGE;
  }
  ret->target = with_target ? argv[optind] : NULL;
  return -1;
}

/* HOST[:PORT], or an IPv6 address as people type it. */
static int parse_target(const char *text, struct host *ret_host, uint16_t *ret_port)
{
  struct address address;
  char bracketed[ADDRESS_TEXT_SIZE + sizeof "[]"];
  if (address_parse(text, &address) == 0 && address.family == 6) {
    snprintf(bracketed, sizeof bracketed, "[%s]", text);
    text = bracketed;
  }
  return authority_parse(text, strlen(text), DEFAULT_PORT, ret_host, ret_port);
}

static int load(const char *path, bool with_warnings, struct config **ret)
{
  struct config_report report;
  int result = config_load(path, ret, &report);
  if (result < 0 || with_warnings)
    config_report_print(&report, stderr);
  config_report_clear(&report);
  return result;
}

/* The policy to ask, and in `chosen` how it came to be that one. NULL, told on standard error, when there is none. */
static const struct policy *choose_policy(const struct config *config, const char *name, char *chosen, size_t size)
{
  const struct policy *policy = NULL;
  if (name) {
    char text[SHOWN_SIZE];
    policy = config_policy(config, name);
    snprintf(chosen, size, "as named");
    if (!policy)
      fprintf(stderr, "sallyport check: there is no policy \"%s\"\n", shown(name, text));
  } else if (config->policy_count == 1) {
    policy = &config->policies[0];
    snprintf(chosen, size, "the only one");
  } else if (config->egress_count > 0) {
    policy = config->egress[0].policy;
    char listener[ADDRESS_TEXT_SIZE];
    endpoint_format(&config->egress[0].endpoint, listener, sizeof listener);
    snprintf(chosen, size, "of the first listener, %s", listener);
  } else {
    fputs("sallyport check: no listener says which policy to ask: name one with --policy\n", stderr);
  }
  return policy;
}

static int check(const struct config *config, const struct arguments *arguments, const struct check_question *asked)
{
  struct check_question question = *asked;
  char chosen[SHOWN_SIZE];
  question.policy = choose_policy(config, arguments->policy, chosen, sizeof chosen);
  if (!question.policy)
    return EXIT_CODE_USAGE;
  struct own_listeners own;
  int result = check_own_read(config, &own);
  if (result < 0) {
    fprintf(stderr, "sallyport check: cannot read the interfaces: %s\n", strerror(-result));
    return EXIT_CODE_RUNTIME;
  }
  question.policy_chosen = chosen;
  question.own = &own;
  question.hosts_file = config->hosts_file;
  bool allowed = check_verdict(&question, stdout);
  check_own_clear(&own);
  return allowed ? 0 : EXIT_CODE_DENIED;
}

int cmd_check(int argc, char **argv)
{
  struct arguments arguments;
  int code = parse_arguments(argc, argv, true, usage_check, &arguments);
  if (code >= 0)
    return code;
  struct check_question question = {0};
  if (parse_target(arguments.target, &question.host, &question.port) < 0) {
    char text[SHOWN_SIZE];
    fprintf(stderr, "sallyport check: \"%s\" is malformed (a request for it gets 400): write HOST or HOST:PORT\n",
            shown(arguments.target, text));
    return EXIT_CODE_USAGE;
  }
  struct config *config;
  if (load(arguments.config, false, &config) < 0)
    return EXIT_CODE_CONFIGURATION;
  code = check(config, &arguments, &question);
  config_free(config);
  return code;
}

static void print_count(size_t count, const char *one, const char *many, const char *behind)
{
  printf("%zu %s%s", count, count == 1 ? one : many, behind);
}

int cmd_check_config(int argc, char **argv)
{
  struct arguments arguments;
  int code = parse_arguments(argc, argv, false, usage_check_config, &arguments);
  if (code >= 0)
    return code;
  struct config *config;
  if (load(arguments.config, true, &config) < 0)
    return EXIT_CODE_CONFIGURATION;
  size_t rules = 0;
  for (size_t i = 0; i < config->policy_count; i++)
    rules += config->policies[i].allow_count + config->policies[i].deny_count;
  char file[SHOWN_SIZE];
  printf("%s: ok (", shown(arguments.config, file));
  print_count(config->policy_count, "policy", "policies", ", ");
  print_count(rules, "rule", "rules", ", ");
  print_count(config->egress_count, "listener", "listeners", ")\n");
  config_free(config);
  return 0;
}
