#include "shared/messages.h"

#include <string.h>

struct row {
  const char *name;
  size_t size;
  unsigned links;
  enum receiver receiver;
  bool descriptor;
  unsigned states;
};

static const struct row rows[MSG_TYPE_END] = {
#define X(name, number, payload, links, to, descriptor, states, says) \
  [number] = {#name, sizeof(struct payload), links, to, descriptor, states},
  MESSAGES(X)
#undef X
};

/* clang-format off */
/* Strings: NUL within, zeroes behind. */
#define STRINGS(X) \
  X(ASK_EGRESS, host) \
  X(REFUSAL, policy) \
  X(REFUSAL, rule) \
  X(REFUSAL, address_class) \
  X(REFUSAL, message) \
  X(LOOKUP, name)

/* Explicit padding. */
#define ZEROES(X) \
  X(READY, zero) \
  X(ASK_EGRESS, zero) \
  X(ABANDON, zero) \
  X(SESSION_CLOSED, zero) \
  X(WORKER_REFUSED, zero) \
  X(WORKER_SETTINGS, zero) \
  X(LISTENER, zero) \
  X(GRANT, zero) \
  X(REFUSAL, zero) \
  X(DRAIN, zero) \
  X(END, zero) \
  X(RESOLVER_SETTINGS, zero) \
  X(LOOKUP, zero) \
  X(LOOKUP_CANCEL, zero) \
  X(SOCKET, zero) \
  X(SOCKET_FAILED, zero)
/* clang-format on */

/* Implicit padding would leak the sender's memory and could not be checked. */
#define WIDTHS_EQUAL(payload, widths) _Static_assert(sizeof(struct payload) == (widths), #payload " has padding")
WIDTHS_EQUAL(msg_ready, 16);
WIDTHS_EQUAL(msg_ask_egress, 16 + HOST_TEXT_SIZE);
WIDTHS_EQUAL(msg_abandon, 16);
WIDTHS_EQUAL(msg_session_closed, 32);
WIDTHS_EQUAL(msg_worker_refused, 8);
WIDTHS_EQUAL(msg_lookup_answer, 16 + LOOKUP_ADDRESSES_MAX * 17);
WIDTHS_EQUAL(msg_want_socket, 16);
WIDTHS_EQUAL(msg_worker_settings, 48);
WIDTHS_EQUAL(msg_listener, 8);
WIDTHS_EQUAL(msg_grant, 24);
WIDTHS_EQUAL(msg_refusal, 24 + 2 * POLICY_NAME_SIZE + RULE_TEXT_SIZE + POLICY_MESSAGE_SIZE);
WIDTHS_EQUAL(msg_drain, 8);
WIDTHS_EQUAL(msg_end, 8);
WIDTHS_EQUAL(msg_lookup_cancel, 16);
WIDTHS_EQUAL(msg_resolver_settings, 24);
WIDTHS_EQUAL(msg_hosts_file, 8);
WIDTHS_EQUAL(msg_lookup, 16 + HOST_TEXT_SIZE);
WIDTHS_EQUAL(msg_socket, 16);
WIDTHS_EQUAL(msg_socket_failed, 16);

static const struct row *row_of(uint32_t type)
{
  return type < MSG_TYPE_END && rows[type].size > 0 ? &rows[type] : NULL;
}

size_t message_size(uint32_t type)
{
  const struct row *row = row_of(type);
  return row ? row->size : 0;
}

const char *message_name(uint32_t type)
{
  const struct row *row = row_of(type);
  return row ? row->name : "unknown";
}

bool message_has_descriptor(uint32_t type)
{
  const struct row *row = row_of(type);
  return row && row->descriptor;
}

bool message_allowed(uint32_t type, enum link_state state)
{
  const struct row *row = row_of(type);
  return row && (row->states & state);
}

static bool all_zero(const void *bytes, size_t length)
{
  const unsigned char *byte = bytes;
  for (size_t i = 0; i < length; i++)
    if (byte[i])
      return false;
  return true;
}

static bool string_sound(const char *field, size_t size)
{
  size_t length = strnlen(field, size);
  return length < size && all_zero(field + length, size - length);
}

static const char *check_strings(const union message *m)
{
#define X(name, field)                                                             \
  if (m->type == MSG_##name && !string_sound(m->name.field, sizeof m->name.field)) \
    return "string " #field " is not terminated or not zero behind its end";
  STRINGS(X)
#undef X
#define X(name, field)                             \
  if (m->type == MSG_##name && m->name.field != 0) \
    return "padding is not zero";
  ZEROES(X)
#undef X
  return NULL;
}

static const char *check_lookup_answer(const struct msg_lookup_answer *m)
{
  if (m->status >= LOOKUP_STATUS_COUNT || m->count > LOOKUP_ADDRESSES_MAX ||
      (m->status == LOOKUP_FOUND) != (m->count > 0))
    return "lookup status and count do not agree";
  for (size_t i = 0; i < LOOKUP_ADDRESSES_MAX; i++) {
    const struct address *a = &m->addresses[i];
    bool used = i < m->count;
    size_t width = !used ? 0 : a->family == 4 ? 4 : 16;
    if (used ? a->family != 4 && a->family != 6 : a->family != 0)
      return "address family is wrong";
    if (!all_zero(a->bytes + width, sizeof a->bytes - width))
      return "address is not zero behind its end";
  }
  return NULL;
}

const char *message_check(const union message *message, size_t size, enum link link, enum receiver receiver)
{
  if (size < sizeof message->type)
    return "shorter than a type";
  const struct row *row = row_of(message->type);
  if (!row || !(row->links & link) || row->receiver != receiver)
    return "type is unknown on this link";
  if (size != row->size)
    return "size is not the type's";
  const char *wrong = check_strings(message);
  if (!wrong && message->type == MSG_LOOKUP_ANSWER)
    wrong = check_lookup_answer(&message->LOOKUP_ANSWER);
  return wrong;
}
