/* Rules that cannot do what their author thinks: reported with file and line. */
#pragma once

#include "policy/config/report.h"

/* Warns of allow rules that a deny covers, of rules that an earlier one repeats, of wildcards over a public suffix and
   of networks that open less than they name; an error when one host has too many rules. The policy has been indexed. */
void rule_checks(const struct policy *policy, struct report_builder *report);
