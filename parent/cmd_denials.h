/* `sallyport denials`: the refusals in the audit log, for people and scripts. */
#pragma once

/* argv[0] is the subcommand's name. Returns the exit code. */
int cmd_denials(int argc, char **argv);
