/* From a parsed head to what is asked of the parent: method and target of an egress request. Pure.
   RFC 9110 section 9.3.6 (CONNECT), RFC 9112 section 3.2. */
#pragma once

#include "child/worker/http_head.h"
#include "policy/egress/host.h"
#include "shared/reasons.h"

struct egress_request {
  struct host host;
  uint16_t port;
};

/* REASON_NONE with *ret set: ask the parent (odd address spellings are asked too; it refuses and records them).
   Else BAD_REQUEST or METHOD_NOT_ALLOWED, with *ret_why a literal sentence for whoever reads the answer (for an
   origin-form request: that this is a proxy port and how to use it). */
enum reason egress_request_parse(const struct http_head *head, struct egress_request *ret, const char **ret_why);
