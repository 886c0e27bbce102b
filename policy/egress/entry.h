/* The text of one allow or deny entry, as it stands in the configuration and in list files:

     HOST[:PORTS] [-> NETWORK[,NETWORK]]
     HOST     name | *.name | address | network/length; IPv6 in brackets ([2001:db8::]/32:443, or [2001:db8::/32]:443)
     PORTS    443 | 443,8443 | 8000-8100; 80 and 443 when an allow entry names none, every port when a deny entry does
     NETWORK  special ranges that the name may resolve into (allow entries by name only)
     * and *:PORTS are deny entries only.

   Pure. Trust: root-owned text, parsed as strictly as any other. */
#pragma once

#include <stddef.h>

#include "policy/egress/policy.h"

enum entry_list { ENTRY_ALLOW, ENTRY_DENY };

#define ENTRY_PROBLEM_SIZE 320

struct entry_problem {
  char text[ENTRY_PROBLEM_SIZE]; /* what is wrong and what to write; may quote the entry's bytes as they are */
};

/* Parses an entry of `length` bytes; blanks at both ends are ignored. 0 with *ret owned by the caller (rule_clear; file
   and line are left empty), -EINVAL with *ret_problem, or -ENOMEM. */
int entry_parse(const char *text, size_t length, enum entry_list list, struct rule *ret,
                struct entry_problem *ret_problem);

void rule_clear(struct rule *rule);
