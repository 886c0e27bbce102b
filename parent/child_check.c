#include "parent/child_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/confinement/confine.h"

/* X: line of /proc/PID/status, expected value, what it means when it differs */
static const struct expectation {
  const char *key;
  unsigned long value;
  int base;
  const char *otherwise;
} expectations[] = {
  {"Seccomp:", 2, 10, "it says that it is confined, and has no system call filter"},
  {"NoNewPrivs:", 1, 10, "it says that it is confined, and could gain privileges"},
  {"CapEff:", 0, 16, "it says that it is confined, and has effective capabilities"},
  {"CapPrm:", 0, 16, "it says that it is confined, and has permitted capabilities"},
  {"CapInh:", 0, 16, "it says that it is confined, and has inheritable capabilities"},
  {"CapAmb:", 0, 16, "it says that it is confined, and has ambient capabilities"},
};

static const char *check_line(const char *line, uid_t uid, unsigned *seen)
{
  for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
    size_t length = strlen(expectations[i].key);
    if (strncmp(line, expectations[i].key, length) != 0)
      continue;
    *seen |= 1U << i;
    return strtoul(line + length, NULL, expectations[i].base) == expectations[i].value ? NULL
                                                                                       : expectations[i].otherwise;
  }
  unsigned real, effective, saved, filesystem;
  if (sscanf(line, "Uid: %u %u %u %u", &real, &effective, &saved, &filesystem) == 4 &&
      (real != uid || effective != uid || saved != uid || filesystem != uid))
    return "it says that it is confined, and is another user";
  return NULL;
}

static const char *check_waived(uint32_t waived, enum confinement_mode mode)
{
  for (unsigned step = 0; step < 32; step++) {
    if (!(waived & 1U << step))
      continue;
    if (mode != CONFINEMENT_BEST_EFFORT || step >= STEP_COUNT || !confinement_step_needs_root(step))
      return "it waived a confinement step that may not be waived";
  }
  return NULL;
}

const char *child_check(pid_t pid, uid_t uid, uint32_t waived, enum confinement_mode mode)
{
  const char *wrong = check_waived(waived, mode);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  FILE *status = wrong ? NULL : fopen(path, "re");
  if (!status)
    return wrong ? wrong : "its /proc/PID/status cannot be read";
  char line[256];
  unsigned seen = 0;
  while (!wrong && fgets(line, sizeof line, status))
    wrong = check_line(line, uid, &seen);
  fclose(status);
  if (!wrong && seen != (1U << sizeof expectations / sizeof *expectations) - 1)
    wrong = "its /proc/PID/status lacks what must be checked";
  return wrong;
}
