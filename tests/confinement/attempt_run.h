/* Makes one call of the table. */
#pragma once

#include "tests/confinement/attempts.h"

/* What the stand-ins of attempts.h stand for; -1 where there is no such descriptor. */
struct scene {
  int session;
  int spare_session;
  int pipe_in;
  int pipe_out;
  int epoll;
};

/* How it went, as far as it returned. */
struct attempt_result {
  int64_t value;
  int64_t error; /* errno where value is -1 */
};

/* Memory and a filled pipe, before the filter; the sessions are the caller's. 0 or -errno. */
int scene_prepare(struct scene *ret);

struct attempt_result attempt_run(const struct attempt *attempt, const struct scene *scene);
