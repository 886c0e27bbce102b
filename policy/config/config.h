/* The configuration in memory, and the one way to load it: used by the parent, check-config and check. Root-owned files
   only. Trust: reads files as the caller; no network. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "policy/egress/policy.h"
#include "shared/address.h"

enum confinement_mode { CONFINEMENT_REQUIRED, CONFINEMENT_BEST_EFFORT };

struct config_listener {
  char *text; /* as written */
  struct endpoint endpoint;
  const struct policy *policy;
  unsigned line;
};

struct config_limits {
  uint32_t head_timeout_ms;          /* 10 s */
  uint32_t dns_timeout_ms;           /* 5 s */
  uint32_t dial_timeout_ms;          /* 10 s */
  uint32_t tunnel_idle_ms;           /* 1 h */
  uint32_t half_open_idle_ms;        /* 5 min */
  uint32_t keepalive_idle_ms;        /* 60 s until the first probe */
  uint32_t dead_peer_ms;             /* 120 s: TCP_USER_TIMEOUT, and keep-alive in all */
  uint32_t connections_per_listener; /* 16,384 */
  uint32_t buffered_bytes;           /* 256 KiB per direction */
  uint32_t buffered_total_bytes;     /* 64 MiB per worker */
  uint32_t drain_timeout_ms;         /* 30 s */
  uint32_t audit_fsync_ms;           /* 100 ms */
  uint32_t dials_in_flight;          /* 4,096 */
};

struct config {
  char *path;         /* of the main file */
  unsigned user_line; /* 0: not written */
  unsigned audit_line;
  char *user; /* "sallyport" */
  enum confinement_mode confinement;
  char *audit; /* path; never NULL */
  bool log_json;
  unsigned log_level;           /* enum log_level */
  unsigned workers;             /* 0: one per core */
  struct endpoint *nameservers; /* resolver.nameservers; empty when "system" */
  size_t nameserver_count;
  bool nameservers_system;
  char *hosts_file; /* NULL: none */
  struct policy *policies;
  size_t policy_count;
  struct config_listener *egress;
  size_t egress_count;
  struct config_limits limits;
  char **files; /* names that rules point to */
  size_t file_count;
};

struct config_problem {
  char *file;
  unsigned line; /* 0: the file as a whole */
  bool is_error; /* else a warning */
  char *text;    /* what is wrong and what to do */
};

struct config_report {
  struct config_problem *problems; /* in order of file and line */
  size_t count;
  size_t errors;
};

/* Loads and checks the file and all that it names: every problem at once. 0 with *ret owned by the caller when there is
   no error (warnings may stand in the report); -EINVAL when there is one, -ENOMEM. `report` is set in each case and is
   cleared by config_report_clear. */
int config_load(const char *path, struct config **ret, struct config_report *report);

void config_free(struct config *config);
void config_report_clear(struct config_report *report);

/* "file:line: error: text" a line. */
void config_report_print(const struct config_report *report, FILE *stream);

const struct policy *config_policy(const struct config *config, const char *name);
