#include "shared/reasons.h"

const struct reason_row *reason_row(unsigned reason)
{
  static const struct reason_row rows[REASON_COUNT] = {
#define X(symbol, id, status, token, phrase) {id, status, token, phrase},
    REASONS(X)
#undef X
  };
  return &rows[reason < REASON_COUNT ? reason : REASON_INTERNAL];
}

const char *ending_id(unsigned ending)
{
  static const char *const ids[ENDING_COUNT] = {
#define X(symbol, id) id,
    ENDINGS(X)
#undef X
  };
  return ending < ENDING_COUNT ? ids[ending] : ids[ENDING_ERROR];
}
