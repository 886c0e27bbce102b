/* From the bytes of a nameserver's answer to addresses and how long they hold. Trust: parses hostile bytes; bounded
   work, reads nothing outside the packet. RFC 1035 section 4, RFC 2308 section 5. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "child/resolver/address_list.h"
#include "shared/messages.h"

struct answer {
  enum lookup_status status; /* FOUND; NO_NAME: no such name, or no address of this family; FAILED: anything else */
  uint32_t ttl_s;            /* of FOUND and NO_NAME; capped; 0: holds for this once only */
  struct address_list addresses;
};

/* Reads the answer to the question for `name` (canonical) and `family` (4 or 6). Aliases are followed within the
   answer section from the name that was asked; records of any other name are ignored. */
void answer_read(const unsigned char *packet, size_t length, const char *name, unsigned family, struct answer *ret);
