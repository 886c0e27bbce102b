/* sallyport-worker: the process that meets hostile bytes, and holds nothing worth having. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "child/start.h"
#include "child/worker/worker.h"
#include "shared/log.h"

#define EXIT_RUNTIME 1

/* "sallyport: egress worker 0" is the title that the parent gave; the log shows what stands behind the colon. */
static const char *name_of(const char *title)
{
  static const char prefix[] = "sallyport: ";
  return title && strncmp(title, prefix, sizeof prefix - 1) == 0 ? title + sizeof prefix - 1 : "egress worker";
}

int main(int argc, char **argv)
{
  const char *name = name_of(argc > 0 ? argv[0] : NULL);
  tzset(); /* the first log line would open the time zone file, behind the filter */
  log_setup(name, LOG_LEVEL_INFO, false);
  /* splice and writev to a connection that is gone raise it, whatever their flags. */
  signal(SIGPIPE, SIG_IGN);
  struct counters *counters = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, CHILD_COUNTERS_FD, 0);
  if (counters == MAP_FAILED) {
    log_error("the counters cannot be mapped");
    return EXIT_RUNTIME;
  }
  struct worker *worker = worker_new(name, CHILD_CHANNEL_FD, counters);
  if (!worker)
    return EXIT_RUNTIME;
  child_start(ROLE_WORKER);
  if (worker_start(worker) < 0)
    return EXIT_RUNTIME;
  while (worker_turn(worker, true))
    ;
  int exit_code = worker->exit_code;
  worker_free(worker);
  return exit_code;
}
