/* Builds DNS messages for the resolver's tests. Names are written uncompressed. */
#pragma once

#include <stdint.h>
#include <string.h>

enum { PACKET_A = 1, PACKET_CNAME = 5, PACKET_SOA = 6, PACKET_AAAA = 28 };
enum { PACKET_NO_ERROR = 0, PACKET_FORMERR = 1, PACKET_SERVFAIL = 2, PACKET_NXDOMAIN = 3, PACKET_REFUSED = 5 };
enum packet_section { PACKET_ANSWER = 6, PACKET_AUTHORITY = 8 }; /* offset of the section's count */

struct packet_bytes {
  size_t length;
  unsigned char bytes[65535];
};

static inline void packet_16(struct packet_bytes *p, unsigned value)
{
  p->bytes[p->length++] = (unsigned char)(value >> 8);
  p->bytes[p->length++] = (unsigned char)value;
}

static inline void packet_32(struct packet_bytes *p, uint32_t value)
{
  packet_16(p, value >> 16);
  packet_16(p, value & 0xffff);
}

static inline void packet_name(struct packet_bytes *p, const char *name)
{
  while (*name) {
    size_t label = strcspn(name, ".");
    p->bytes[p->length++] = (unsigned char)label;
    memcpy(p->bytes + p->length, name, label);
    p->length += label;
    name += label + (name[label] == '.');
  }
  p->bytes[p->length++] = 0;
}

static inline void packet_begin(struct packet_bytes *p, unsigned id, unsigned rcode, const char *name, unsigned type)
{
  p->length = 0;
  packet_16(p, id);
  packet_16(p, 0x8180 | rcode);
  packet_16(p, 1);
  packet_16(p, 0);
  packet_32(p, 0);
  packet_name(p, name);
  packet_16(p, type);
  packet_16(p, 1);
}

static inline void packet_truncated(struct packet_bytes *p)
{
  p->bytes[2] |= 0x02;
}

static inline void packet_count(struct packet_bytes *p, enum packet_section section)
{
  if (++p->bytes[section + 1] == 0)
    p->bytes[section]++;
}

static inline void packet_record(struct packet_bytes *p, enum packet_section section, const char *owner, unsigned type,
                                 uint32_t ttl_s, const void *data, size_t length)
{
  packet_count(p, section);
  packet_name(p, owner);
  packet_16(p, type);
  packet_16(p, 1);
  packet_32(p, ttl_s);
  packet_16(p, (unsigned)length);
  memcpy(p->bytes + p->length, data, length);
  p->length += length;
}

/* An address whose last byte is `last`: 192.0.2.last or 2001:db8::last. */
static inline void packet_address(struct packet_bytes *p, const char *owner, unsigned type, uint32_t ttl_s,
                                  unsigned last)
{
  unsigned char v4[4] = {192, 0, 2, (unsigned char)last};
  unsigned char v6[16] = {0x20, 0x01, 0x0d, 0xb8, [14] = (unsigned char)(last >> 8), [15] = (unsigned char)last};
  packet_record(p, PACKET_ANSWER, owner, type, ttl_s, type == PACKET_A ? v4 : v6, type == PACKET_A ? 4 : 16);
}

static inline void packet_cname(struct packet_bytes *p, const char *owner, uint32_t ttl_s, const char *target)
{
  struct packet_bytes *data = &(struct packet_bytes){0};
  packet_name(data, target);
  packet_record(p, PACKET_ANSWER, owner, PACKET_CNAME, ttl_s, data->bytes, data->length);
}

static inline void packet_soa(struct packet_bytes *p, uint32_t ttl_s, uint32_t minimum_s)
{
  struct packet_bytes *data = &(struct packet_bytes){0};
  packet_name(data, "ns.test");
  packet_name(data, "admin.test");
  for (int i = 0; i < 4; i++)
    packet_32(data, 1);
  packet_32(data, minimum_s);
  packet_record(p, PACKET_AUTHORITY, "test", PACKET_SOA, ttl_s, data->bytes, data->length);
}
