/* The configuration as it was written, with the line of each value: what the schema fills and the checks turn into a
   struct config. */
#pragma once

#include "policy/config/config.h"
#include "policy/config/report.h"
#include "policy/config/walk.h"
#include "policy/egress/entry.h"

/* Rules of one kind of one policy, growing. */
struct draft_rules {
  enum entry_list kind;
  struct rule *rules;
  size_t count;
  size_t capacity;
  const char *lists[POLICY_LISTS_MAX]; /* files read so far; names belong to the configuration */
  size_t list_count;
  bool full; /* reported once */
};

struct draft_policy {
  unsigned line;
  struct text name;
  struct text message;
  unsigned mode;
  struct draft_rules allow;
  struct draft_rules deny;
};

struct draft_listener {
  unsigned line;
  struct text listen;
  struct text policy;
  unsigned authenticate;
  bool authenticate_written;
  bool open;
};

struct draft {
  struct config *config;
  struct report_builder *report;
  struct text user;
  struct text audit;
  struct text hosts_file;
  struct texts nameservers;
  unsigned confinement;
  unsigned log;
  unsigned log_level;
  uint32_t workers;
  struct draft_policy *policies;
  size_t policy_count;
  struct draft_listener *listeners;
  size_t listener_count;
  struct config_limits limits;
  unsigned limits_line;
};

void draft_clear(struct draft *draft);
