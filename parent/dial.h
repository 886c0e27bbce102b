/* Happy eyeballs (RFC 8305): connects to the first of several checked addresses that answers. */
#pragma once

#include <event2/event.h>
#include <stddef.h>

#include "policy/config/config.h"
#include "shared/address.h"
#include "shared/reasons.h"

struct dialer;
struct dial;

/* The dial ended. REASON_NONE: `fd` (the callee owns it) is connected to *endpoint, non-blocking, with the options of
   every TCP connection. Else CONNECTION_REFUSED, UNREACHABLE, CONNECTION_TIMEOUT, CONNECTION_FAILED or LIMIT_REACHED,
   fd is -1 and *endpoint the last address tried. The dial is freed after the call. */
typedef void dial_done(void *context, enum reason reason, int fd, const struct endpoint *endpoint);

/* `attempts_max`: sockets in flight at once, over all dials. NULL when memory is short. */
struct dialer *dialer_new(struct event_base *base, const struct config_limits *limits, size_t attempts_max);
void dialer_free(struct dialer *dialer);

/* Dials endpoints in the order given (families interleaved here, IPv6 first), a further one every
   DIAL_ATTEMPT_DELAY_MS, all of it within limits.dial_timeout_ms. `done` may be called before this returns (then *ret
   is NULL). count is 1 to DIAL_ADDRESSES_MAX; more are not tried. */
void dial_start(struct dialer *dialer, const struct endpoint *endpoints, size_t count, dial_done *done, void *context,
                struct dial **ret);

/* Abandons: every attempt is closed, `done` is not called. */
void dial_cancel(struct dial *dial);
