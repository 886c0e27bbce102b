/* sallyport-resolver: everything that must be opened or seeded, then confinement, then the loop. */
#include <ares.h>
#include <signal.h>
#include <string.h>

#include "child/resolver/resolver.h"
#include "child/start.h"
#include "shared/log.h"

int main(void)
{
  log_setup("resolver", LOG_LEVEL_INFO, false);
  /* A nameserver that closes its TCP connection must not end the process: writev has no flag against the signal. */
  (void)signal(SIGPIPE, SIG_IGN);
  struct resolver *resolver = NULL;
  int result = ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS ? resolver_new(CHILD_CHANNEL_FD, &resolver) : -1;
  if (result < 0) {
    log_error("the resolver cannot be set up: %s", strerror(-result));
    return 1;
  }
  child_start(ROLE_RESOLVER);
  /* What it holds ends with the process. */
  return resolver_run(resolver) == 0 ? 0 : 1;
}
