#include "shared/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_monotonic_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void clock_wall_text(char *ret, size_t size)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct tm utc;
  gmtime_r(&now.tv_sec, &utc);
  size_t used = strftime(ret, size, "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(ret + used, size - used, ".%03ldZ", now.tv_nsec / 1000000);
}
