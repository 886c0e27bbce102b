#include "policy/egress/prefix.h"

#include <stdio.h>
#include <string.h>

/* Where IPv6 forms carry an IPv4 address: RFC 4291 section 2.5.5, RFC 2765 (translated), RFC 6052 section 2.2 (which
   skips byte 8), RFC 8215 (local NAT64, whose own prefix length is not known, so every place is looked at), RFC 3056,
   RFC 4380 section 4 (the client's bits are inverted). */
struct embedding {
  struct prefix form;
  uint8_t at[4];
  bool inverted;
};

#define V6(...)                           \
  {                                       \
    .family = 6, .bytes = { __VA_ARGS__ } \
  }

static const struct embedding embeddings[] = {
  {{V6([10] = 0xff, 0xff), 96}, {12, 13, 14, 15}, false},
  {{V6(0), 96}, {12, 13, 14, 15}, false},
  {{V6([8] = 0xff, 0xff), 96}, {12, 13, 14, 15}, false},
  {{V6(0x00, 0x64, 0xff, 0x9b), 96}, {12, 13, 14, 15}, false},
  {{V6(0x00, 0x64, 0xff, 0x9b, 0x00, 0x01), 48}, {12, 13, 14, 15}, false},
  {{V6(0x00, 0x64, 0xff, 0x9b, 0x00, 0x01), 48}, {6, 7, 9, 10}, false},
  {{V6(0x00, 0x64, 0xff, 0x9b, 0x00, 0x01), 48}, {7, 9, 10, 11}, false},
  {{V6(0x00, 0x64, 0xff, 0x9b, 0x00, 0x01), 48}, {9, 10, 11, 12}, false},
  {{V6(0x20, 0x02), 16}, {2, 3, 4, 5}, false},
  {{V6(0x20, 0x01, 0x00, 0x00), 32}, {12, 13, 14, 15}, true},
  {{V6(0x20, 0x01, 0x00, 0x00), 32}, {4, 5, 6, 7}, false},
};

uint8_t address_bits(const struct address *address)
{
  return address->family == 6 ? 128 : 32;
}

struct prefix prefix_of_address(const struct address *address)
{
  return (struct prefix){.network = *address, .length = address_bits(address)};
}

struct prefix prefix_masked(const struct prefix *prefix)
{
  struct prefix masked = *prefix;
  for (unsigned i = 0; i < sizeof masked.network.bytes; i++) {
    unsigned known = prefix->length > i * 8 ? prefix->length - i * 8 : 0;
    if (known < 8)
      masked.network.bytes[i] &= (uint8_t)(0xff00u >> known);
  }
  return masked;
}

const char *prefix_format(const struct prefix *prefix, char *text, size_t size)
{
  address_format(&prefix->network, text, size);
  size_t used = strlen(text);
  if (prefix->length < address_bits(&prefix->network))
    snprintf(text + used, size - used, "/%u", (unsigned)prefix->length);
  return text;
}

bool prefix_contains(const struct prefix *outer, const struct prefix *inner)
{
  return outer->length <= inner->length && address_in_prefix(&inner->network, &outer->network, outer->length);
}

/* :: and ::1 lie in ::/96 but are no IPv4-compatible addresses (RFC 4291 section 2.5.5.1). */
static bool is_low_ipv6(const struct prefix *prefix)
{
  static const uint8_t zero[15];
  return prefix->length == 128 && memcmp(prefix->network.bytes, zero, sizeof zero) == 0 &&
         prefix->network.bytes[15] <= 1;
}

static struct prefix embedded_view(const struct prefix *prefix, const struct embedding *embedding)
{
  struct prefix view = {.network.family = 4};
  for (unsigned i = 0; i < 4; i++) {
    unsigned at = embedding->at[i];
    unsigned known = prefix->length > at * 8 ? prefix->length - at * 8 : 0;
    if (known > 8)
      known = 8;
    uint8_t byte = prefix->network.bytes[at];
    view.network.bytes[i] = embedding->inverted ? (uint8_t)~byte : byte;
    view.length = (uint8_t)(view.length + known);
  }
  return prefix_masked(&view);
}

size_t prefix_views(const struct prefix *prefix, struct prefix ret[PREFIX_VIEWS_MAX])
{
  size_t count = 0;
  ret[count++] = *prefix;
  if (prefix->network.family != 6 || is_low_ipv6(prefix))
    return count;
  for (size_t i = 0; i < sizeof embeddings / sizeof embeddings[0]; i++) {
    if (count < PREFIX_VIEWS_MAX && prefix_contains(&embeddings[i].form, prefix))
      ret[count++] = embedded_view(prefix, &embeddings[i]);
  }
  return count;
}

bool prefix_holds(const struct prefix *prefix, const struct address *address)
{
  struct prefix whole = prefix_of_address(address);
  struct prefix views[PREFIX_VIEWS_MAX];
  size_t count = prefix_views(&whole, views);
  for (size_t i = 0; i < count; i++) {
    if (prefix_contains(prefix, &views[i]))
      return true;
  }
  return false;
}

/* Whether some reading of the rule's prefix holds this reading of the address and stays inside the special range. */
static bool view_is_opened(const struct prefix *views, size_t count, const struct prefix *face,
                           const struct prefix *range)
{
  for (size_t i = 0; i < count; i++) {
    if (prefix_contains(&views[i], face) && prefix_contains(range, &views[i]))
      return true;
  }
  return false;
}

bool prefix_opens(const struct prefix *prefix, const struct address *address)
{
  if (!prefix_holds(prefix, address))
    return false;
  struct prefix whole = prefix_of_address(address);
  if (prefix_contains(&whole, prefix))
    return true;
  enum address_class worst = address_classify(address);
  if (worst == CLASS_METADATA)
    return false;
  struct prefix opening[PREFIX_VIEWS_MAX], faces[PREFIX_VIEWS_MAX];
  size_t opening_count = prefix_views(prefix, opening);
  size_t face_count = prefix_views(&whole, faces);
  for (size_t i = 0; i < face_count; i++) {
    struct prefix range;
    enum address_class face_class;
    if (special_range(&faces[i].network, &range, &face_class) &&
        !view_is_opened(opening, opening_count, &faces[i], &range))
      return false;
  }
  return true;
}

bool address_embedded_ipv4(const struct address *address, struct address *ret)
{
  struct prefix whole = prefix_of_address(address);
  struct prefix views[PREFIX_VIEWS_MAX];
  if (prefix_views(&whole, views) < 2)
    return false;
  *ret = views[1].network;
  return true;
}
