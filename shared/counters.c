#include "shared/counters.h"

const char *counter_id(unsigned counter)
{
  static const char *const ids[COUNTER_COUNT] = {
#define X(symbol, id) id,
    COUNTERS(X)
#undef X
  };
  return counter < COUNTER_COUNT ? ids[counter] : "unknown";
}
