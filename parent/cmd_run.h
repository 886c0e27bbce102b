/* `sallyport run`: the daemon. */
#pragma once

#define EXIT_CODE_RUNTIME 1
#define EXIT_CODE_USAGE 2
#define EXIT_CODE_CONFIGURATION 3
#define EXIT_CODE_CONFINEMENT 4

/* argv[0] is the subcommand's name. Returns the exit code. */
int cmd_run(int argc, char **argv);
