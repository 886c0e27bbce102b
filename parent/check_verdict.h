/* What `sallyport check` says about one host and port. */
#pragma once

#include <stdio.h>

#include "policy/config/config.h"
#include "policy/egress/decide.h"

struct check_question {
  const struct policy *policy;
  const char *policy_chosen; /* "named", "the only one", "of the first listener, ..." */
  struct host host;
  uint16_t port;
  const struct own_listeners *own;
  const char *hosts_file; /* NULL: none */
};

/* Judges as the daemon does, the addresses that the hosts file has included, and prints the verdict, why, and for a
   refusal what would permit it. True when allowed. */
bool check_verdict(const struct check_question *question, FILE *stream);
