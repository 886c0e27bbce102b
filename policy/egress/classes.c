#include "policy/egress/classes.h"

#include "policy/egress/prefix.h"

/* IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), the multicast ranges, the blocks of the IPv6
   address space that are not handed out, and the addresses at which clouds serve instance metadata. The longest prefix
   that holds an address gives its class; an address in none is public. */
struct range_row {
  struct prefix prefix;
  enum address_class address_class;
};

#define R4(a, b, c, d, length, symbol)                             \
  {                                                                \
    {{.family = 4, .bytes = {a, b, c, d}}, length}, CLASS_##symbol \
  }
#define R6(length, symbol, ...)                                     \
  {                                                                 \
    {{.family = 6, .bytes = {__VA_ARGS__}}, length}, CLASS_##symbol \
  }

/* clang-format off */
static const struct range_row ranges[] = {
  R4(0, 0, 0, 0, 8, UNSPECIFIED),       /* "this network": the kernel takes 0.0.0.0 for loopback */
  R4(10, 0, 0, 0, 8, PRIVATE),
  R4(100, 64, 0, 0, 10, SHARED),
  R4(127, 0, 0, 0, 8, LOOPBACK),
  R4(169, 254, 0, 0, 16, LINK_LOCAL),
  R4(172, 16, 0, 0, 12, PRIVATE),
  R4(192, 0, 0, 0, 24, RESERVED),       /* IETF protocol assignments */
  R4(192, 0, 2, 0, 24, DOCUMENTATION),
  R4(192, 31, 196, 0, 24, RESERVED),    /* AS112 */
  R4(192, 52, 193, 0, 24, RESERVED),    /* AMT */
  R4(192, 88, 99, 0, 24, RESERVED),     /* 6to4 relays, withdrawn */
  R4(192, 168, 0, 0, 16, PRIVATE),
  R4(192, 175, 48, 0, 24, RESERVED),    /* AS112 */
  R4(198, 18, 0, 0, 15, BENCHMARKING),
  R4(198, 51, 100, 0, 24, DOCUMENTATION),
  R4(203, 0, 113, 0, 24, DOCUMENTATION),
  R4(224, 0, 0, 0, 4, MULTICAST),
  R4(240, 0, 0, 0, 4, RESERVED),
  R4(255, 255, 255, 255, 32, BROADCAST),

  R4(169, 254, 169, 254, 32, METADATA), /* most clouds */
  R4(169, 254, 170, 2, 32, METADATA),   /* AWS container credentials */
  R4(169, 254, 170, 23, 32, METADATA),  /* AWS pod identity */
  R4(169, 254, 0, 23, 32, METADATA),    /* Tencent */
  R4(169, 254, 42, 42, 32, METADATA),   /* Scaleway */
  R4(168, 63, 129, 16, 32, METADATA),   /* Azure */
  R4(100, 100, 100, 200, 32, METADATA), /* Alibaba */
  R4(192, 0, 0, 192, 32, METADATA),     /* Oracle */

  R6(128, UNSPECIFIED, 0),
  R6(128, LOOPBACK, [15] = 1),
  R6(8, RESERVED, 0x00),
  R6(96, PUBLIC, [10] = 0xff, 0xff),               /* IPv4-mapped: judged by its IPv4 alone */
  R6(96, PUBLIC, 0x00, 0x64, 0xff, 0x9b),          /* NAT64: judged by its IPv4 alone */
  R6(8, RESERVED, 0x01),                           /* discard-only and dummy prefixes among it */
  R6(7, RESERVED, 0x02),
  R6(6, RESERVED, 0x04),
  R6(5, RESERVED, 0x08),
  R6(4, RESERVED, 0x10),
  R6(23, RESERVED, 0x20, 0x01),                    /* IETF protocol assignments, Teredo, ORCHID */
  R6(48, BENCHMARKING, 0x20, 0x01, 0x00, 0x02),
  R6(32, DOCUMENTATION, 0x20, 0x01, 0x0d, 0xb8),
  R6(16, RESERVED, 0x20, 0x02),                    /* 6to4 */
  R6(48, RESERVED, 0x26, 0x20, 0x00, 0x4f, 0x80),  /* AS112 */
  R6(20, DOCUMENTATION, 0x3f, 0xff),
  R6(3, RESERVED, 0x40),                           /* SRv6 identifiers among it */
  R6(3, RESERVED, 0x60),
  R6(3, RESERVED, 0x80),
  R6(3, RESERVED, 0xa0),
  R6(3, RESERVED, 0xc0),
  R6(4, RESERVED, 0xe0),
  R6(5, RESERVED, 0xf0),
  R6(6, RESERVED, 0xf8),
  R6(7, UNIQUE_LOCAL, 0xfc),
  R6(9, RESERVED, 0xfe),
  R6(10, LINK_LOCAL, 0xfe, 0x80),
  R6(10, RESERVED, 0xfe, 0xc0),                    /* site-local, withdrawn */
  R6(8, MULTICAST, 0xff),

  R6(32, METADATA, 0xfd, 0x00, 0x0e, 0xc2),        /* AWS: metadata, pod identity, name and time servers */
  R6(128, METADATA, 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54),                   /* Google */
  R6(128, METADATA, 0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe),       /* Oracle */
  R6(128, METADATA, 0xfd, 0x00, 0x00, 0x42, [15] = 0x42),                         /* Scaleway */
  R6(128, METADATA, 0xfd, 0x00, 0xa9, 0xfe, 0xa9, 0xfe, [15] = 0x01),             /* OpenStack-like clouds */
  R6(128, METADATA, 0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe),                   /* OpenStack */
  R6(128, METADATA, 0xfd, 0x00, 0x01, 0x00, [12] = 0x01, 0x00, 0x02, 0x00),       /* Alibaba */
};
/* clang-format on */

bool special_range(const struct address *address, struct prefix *ret_range, enum address_class *ret_class)
{
  const struct range_row *best = NULL;
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
    const struct range_row *row = &ranges[i];
    if (address_in_prefix(address, &row->prefix.network, row->prefix.length) &&
        (!best || row->prefix.length > best->prefix.length))
      best = row;
  }
  if (!best || best->address_class == CLASS_PUBLIC)
    return false;
  *ret_range = best->prefix;
  *ret_class = best->address_class;
  return true;
}

enum address_class address_classify(const struct address *address)
{
  /* Later in the enum is worse. */
  enum address_class worst = CLASS_PUBLIC;
  struct prefix whole = prefix_of_address(address);
  struct prefix views[PREFIX_VIEWS_MAX];
  size_t count = prefix_views(&whole, views);
  for (size_t i = 0; i < count; i++) {
    struct prefix range;
    enum address_class view_class;
    if (special_range(&views[i].network, &range, &view_class) && view_class > worst)
      worst = view_class;
  }
  return worst;
}

const char *address_class_name(enum address_class address_class)
{
  static const char *const names[CLASS_COUNT] = {
    [CLASS_PUBLIC] = "public",
    [CLASS_LOOPBACK] = "loopback",
    [CLASS_UNSPECIFIED] = "unspecified",
    [CLASS_LINK_LOCAL] = "link-local",
    [CLASS_MULTICAST] = "multicast",
    [CLASS_BROADCAST] = "broadcast",
    [CLASS_PRIVATE] = "private",
    [CLASS_SHARED] = "shared address space",
    [CLASS_UNIQUE_LOCAL] = "unique-local",
    [CLASS_BENCHMARKING] = "benchmarking",
    [CLASS_DOCUMENTATION] = "documentation",
    [CLASS_RESERVED] = "reserved",
    [CLASS_METADATA] = "cloud metadata",
  };
  return (unsigned)address_class < CLASS_COUNT ? names[address_class] : "reserved";
}
