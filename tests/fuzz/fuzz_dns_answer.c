/* Answers of nameservers: nothing is read outside the packet, and what comes out keeps its promises. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child/resolver/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                          \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      abort();                                                                      \
    }                                                                               \
  } while (0)

static void check(const struct answer *answer, unsigned family)
{
  REQUIRE(answer->status <= LOOKUP_FAILED);
  REQUIRE((answer->status == LOOKUP_FOUND) == (answer->addresses.count > 0));
  REQUIRE(answer->addresses.count <= LOOKUP_ADDRESSES_MAX);
  REQUIRE(answer->ttl_s <= (answer->status == LOOKUP_FOUND ? RESOLVER_TTL_MAX_S : RESOLVER_TTL_NEGATIVE_MAX_S));
  REQUIRE(answer->status != LOOKUP_FAILED || answer->ttl_s == 0);
  for (size_t i = 0; i < answer->addresses.count; i++) {
    REQUIRE(answer->addresses.addresses[i].family == family);
    for (size_t j = 0; j < i; j++)
      REQUIRE(!address_equal(&answer->addresses.addresses[i], &answer->addresses.addresses[j]));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  for (unsigned family = 4; family <= 6; family += 2) {
    struct answer answer;
    answer_read(data, size, "a.test", family, &answer);
    check(&answer, family);
  }
  return 0;
}
