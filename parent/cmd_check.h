/* `sallyport check` and `sallyport check-config`: the daemon's own decision and loader, asked from the command line.
   Trust: reads the configuration and the hosts file as the caller; no network. */
#pragma once

#define EXIT_CODE_DENIED 10

/* argv[0] is the subcommand's name. Both return the exit code: 0, 2 usage, 3 configuration; check also 10 denied. */
int cmd_check(int argc, char **argv);
int cmd_check_config(int argc, char **argv);
