#include <criterion/criterion.h>
#include <string.h>

#include "shared/messages.h"
#include "shared/text.h"

static const uint32_t types[] = {
#define X(name, number, payload, links, to, descriptor, states, says) number,
  MESSAGES(X)
#undef X
};

/* A message that passes, for the types that have rules beyond size and padding. */
static void make_sound(union message *m, uint32_t type)
{
  memset(m, 0, sizeof *m);
  m->type = type;
}

static enum link link_of(uint32_t type)
{
  union message m;
  make_sound(&m, type);
  for (int to = TO_PARENT; to <= TO_CHILD; to++)
    if (!message_check(&m, message_size(type), LINK_WORKER, (enum receiver)to))
      return LINK_WORKER;
  return LINK_RESOLVER;
}

static enum receiver receiver_of(uint32_t type, enum link link)
{
  union message m;
  make_sound(&m, type);
  if (type == MSG_LOOKUP_ANSWER)
    m.LOOKUP_ANSWER.status = LOOKUP_NO_NAME;
  return message_check(&m, message_size(type), link, TO_PARENT) ? TO_CHILD : TO_PARENT;
}

Test(messages, every_type_is_accepted_only_in_its_exact_size)
{
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    uint32_t type = types[i];
    union message m;
    make_sound(&m, type);
    if (type == MSG_LOOKUP_ANSWER)
      m.LOOKUP_ANSWER.status = LOOKUP_NO_NAME;
    enum link link = link_of(type);
    enum receiver to = receiver_of(type, link);
    size_t size = message_size(type);
    cr_expect_null(message_check(&m, size, link, to), "%s", message_name(type));
    cr_expect_not_null(message_check(&m, size - 1, link, to), "%s shorter", message_name(type));
    cr_expect_not_null(message_check(&m, size + 1, link, to), "%s longer", message_name(type));
    cr_expect_not_null(message_check(&m, 0, link, to));
    cr_expect_not_null(message_check(&m, size, link, to == TO_PARENT ? TO_CHILD : TO_PARENT), "%s the wrong way",
                       message_name(type));
  }
}

Test(messages, unknown_types_are_refused)
{
  union message m;
  for (uint32_t type = 0; type < 300; type++) {
    make_sound(&m, type);
    if (message_size(type) > 0)
      continue;
    cr_expect_not_null(message_check(&m, 16, LINK_WORKER, TO_PARENT));
    cr_expect_not(message_allowed(type, LINK_RUNNING));
  }
  make_sound(&m, UINT32_MAX);
  cr_expect_not_null(message_check(&m, 16, LINK_WORKER, TO_PARENT));
}

Test(messages, strings_end_within_and_are_zero_behind)
{
  union message m;
  make_sound(&m, MSG_ASK_EGRESS);
  size_t size = message_size(MSG_ASK_EGRESS);
  text_fill(m.ASK_EGRESS.host, sizeof m.ASK_EGRESS.host, "example.org");
  cr_expect_null(message_check(&m, size, LINK_WORKER, TO_PARENT));
  m.ASK_EGRESS.host[12] = 'x';
  cr_expect_not_null(message_check(&m, size, LINK_WORKER, TO_PARENT), "bytes behind the end");
  m.ASK_EGRESS.host[12] = '\0';
  m.ASK_EGRESS.host[sizeof m.ASK_EGRESS.host - 1] = 'x';
  cr_expect_not_null(message_check(&m, size, LINK_WORKER, TO_PARENT), "last byte");
  memset(m.ASK_EGRESS.host, 'a', sizeof m.ASK_EGRESS.host);
  cr_expect_not_null(message_check(&m, size, LINK_WORKER, TO_PARENT), "unterminated");
}

Test(messages, padding_is_zero)
{
  union message m;
  make_sound(&m, MSG_GRANT);
  m.GRANT.zero = 1;
  cr_expect_not_null(message_check(&m, message_size(MSG_GRANT), LINK_WORKER, TO_CHILD));
  make_sound(&m, MSG_SESSION_CLOSED);
  m.SESSION_CLOSED.zero = 256;
  cr_expect_not_null(message_check(&m, message_size(MSG_SESSION_CLOSED), LINK_WORKER, TO_PARENT));
}

Test(messages, lookup_answers_agree_with_themselves)
{
  union message m;
  size_t size = message_size(MSG_LOOKUP_ANSWER);
  make_sound(&m, MSG_LOOKUP_ANSWER);
  struct msg_lookup_answer *a = &m.LOOKUP_ANSWER;
  a->status = LOOKUP_FOUND;
  cr_expect_not_null(message_check(&m, size, LINK_RESOLVER, TO_PARENT), "found nothing");
  a->count = 1;
  a->addresses[0] = (struct address){.family = 4, .bytes = {127, 0, 0, 1}};
  cr_expect_null(message_check(&m, size, LINK_RESOLVER, TO_PARENT));
  a->addresses[0].bytes[4] = 1;
  cr_expect_not_null(message_check(&m, size, LINK_RESOLVER, TO_PARENT), "IPv4 with more than four bytes");
  a->addresses[0].bytes[4] = 0;
  a->addresses[0].family = 5;
  cr_expect_not_null(message_check(&m, size, LINK_RESOLVER, TO_PARENT), "family");
  a->addresses[0].family = 4;
  a->addresses[1].family = 4;
  cr_expect_not_null(message_check(&m, size, LINK_RESOLVER, TO_PARENT), "address beyond the count");
  a->addresses[1].family = 0;
  a->count = LOOKUP_ADDRESSES_MAX + 1;
  cr_expect_not_null(message_check(&m, size, LINK_RESOLVER, TO_PARENT), "count beyond the array");
  a->count = 1;
  a->status = LOOKUP_STATUS_COUNT;
  cr_expect_not_null(message_check(&m, size, LINK_RESOLVER, TO_PARENT), "status");
}

Test(messages, nothing_but_ready_is_said_before_ready)
{
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    cr_expect_eq(message_allowed(types[i], LINK_STARTING), types[i] == MSG_READY, "%s", message_name(types[i]));
  cr_expect_not(message_allowed(MSG_READY, LINK_RUNNING));
}
