#include "child/resolver/answer.h"

#include <ares.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* RFC 1035 sections 3.2 and 4.1. */
#define HEADER_BYTES 12
#define RCODE_OFFSET 3
#define QUESTIONS_OFFSET 4
#define ANSWERS_OFFSET 6
#define AUTHORITIES_OFFSET 8
#define QUESTION_BYTES 4 /* after the name: type, class */
#define RECORD_BYTES 10  /* after the name: type, class, TTL, length */
#define CLASS_OFFSET 2
#define TTL_OFFSET 4
#define LENGTH_OFFSET 8
#define RCODE_MASK 0x0f
#define RCODE_NO_ERROR 0
#define RCODE_NO_NAME 3
#define CLASS_IN 1
#define TYPE_A 1
#define TYPE_CNAME 5
#define TYPE_SOA 6
#define TYPE_AAAA 28
#define SOA_NUMBERS_BYTES 20 /* serial, refresh, retry, expire, minimum */
#define MINIMUM_OFFSET 16
#define TTL_MAX INT32_MAX /* RFC 2181 section 8: with the highest bit set it is zero */

struct packet {
  const unsigned char *bytes;
  size_t length;
};

struct record {
  char owner[HOST_TEXT_SIZE]; /* empty when it does not fit: no name that was asked, then */
  unsigned type;
  unsigned class;
  uint32_t ttl_s;
  size_t data; /* offset */
  size_t data_length;
};

static unsigned read_16(const unsigned char *at)
{
  return (unsigned)at[0] << 8 | at[1];
}

static uint32_t read_32(const unsigned char *at)
{
  return (uint32_t)read_16(at) << 16 | read_16(at + 2);
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

/* Expands the name at *at and moves past it. False when it is malformed; too long a name gives an empty text. */
static bool read_name(const struct packet *packet, size_t *at, char *ret, size_t size)
{
  char *text;
  long used;
  if (*at >= packet->length || ares_expand_name(packet->bytes + *at, packet->bytes, (int)packet->length, &text, &used))
    return false;
  size_t text_length = strlen(text);
  ret[0] = '\0';
  if (text_length < size)
    memcpy(ret, text, text_length + 1);
  ares_free_string(text);
  *at += (size_t)used;
  return *at <= packet->length;
}

static bool read_record(const struct packet *packet, size_t *at, struct record *ret)
{
  if (!read_name(packet, at, ret->owner, sizeof ret->owner) || packet->length - *at < RECORD_BYTES)
    return false;
  const unsigned char *fixed = packet->bytes + *at;
  ret->type = read_16(fixed);
  ret->class = read_16(fixed + CLASS_OFFSET);
  ret->ttl_s = read_32(fixed + TTL_OFFSET);
  if (ret->ttl_s > TTL_MAX)
    ret->ttl_s = 0;
  ret->data_length = read_16(fixed + LENGTH_OFFSET);
  ret->data = *at + RECORD_BYTES;
  if (packet->length - ret->data < ret->data_length)
    return false;
  *at = ret->data + ret->data_length;
  return true;
}

/* Finds the next record of type and owner; *at and *left move past it. 1, 0 when there is none, -1 when malformed. */
static int find_record(const struct packet *packet, size_t *at, unsigned *left, unsigned type, const char *owner,
                       struct record *ret)
{
  for (; *left > 0; (*left)--) {
    if (!read_record(packet, at, ret))
      return -1;
    if (ret->class == CLASS_IN && ret->type == type && (!owner || strcasecmp(ret->owner, owner) == 0)) {
      (*left)--;
      return 1;
    }
  }
  return 0;
}

/* Follows the aliases from `name` to the name that has no further one. False when malformed or without end. */
static bool follow_aliases(const struct packet *packet, size_t start, unsigned count, char *name, uint32_t *ttl_s)
{
  for (unsigned hops = 0; hops <= RESOLVER_ALIASES_MAX; hops++) {
    size_t at = start;
    unsigned left = count;
    struct record record;
    int found = find_record(packet, &at, &left, TYPE_CNAME, name, &record);
    if (found <= 0)
      return found == 0;
    size_t data = record.data;
    if (!read_name(packet, &data, name, HOST_TEXT_SIZE) || !*name)
      return false;
    *ttl_s = lesser(*ttl_s, record.ttl_s);
  }
  return false;
}

static bool collect_addresses(const struct packet *packet, size_t at, unsigned left, const char *owner, unsigned family,
                              struct answer *answer)
{
  struct record record;
  size_t size = family == 4 ? sizeof(struct in_addr) : sizeof(struct in6_addr);
  int found;
  while ((found = find_record(packet, &at, &left, family == 4 ? TYPE_A : TYPE_AAAA, owner, &record)) > 0) {
    if (record.data_length != size)
      return false;
    struct address address = {.family = (uint8_t)family};
    memcpy(address.bytes, packet->bytes + record.data, size);
    (void)address_list_add(&answer->addresses, &address);
    answer->ttl_s = lesser(answer->ttl_s, record.ttl_s);
  }
  return found == 0;
}

/* RFC 2308 section 5: the lesser of the SOA's own TTL and its minimum; without SOA it is not to be cached. */
static uint32_t negative_ttl(const struct packet *packet, size_t at, unsigned answers, unsigned authorities)
{
  struct record record;
  for (; answers > 0; answers--)
    if (!read_record(packet, &at, &record))
      return 0;
  if (find_record(packet, &at, &authorities, TYPE_SOA, NULL, &record) <= 0)
    return 0;
  char name[HOST_TEXT_SIZE];
  size_t data = record.data;
  if (!read_name(packet, &data, name, sizeof name) || !read_name(packet, &data, name, sizeof name) ||
      packet->length - data < SOA_NUMBERS_BYTES)
    return 0;
  uint32_t minimum_s = read_32(packet->bytes + data + MINIMUM_OFFSET);
  return lesser(RESOLVER_TTL_NEGATIVE_MAX_S, lesser(record.ttl_s, minimum_s));
}

static bool read_sections(const struct packet *packet, const char *name, unsigned family, struct answer *answer)
{
  if (packet->length < HEADER_BYTES || read_16(packet->bytes + QUESTIONS_OFFSET) != 1)
    return false;
  unsigned rcode = packet->bytes[RCODE_OFFSET] & RCODE_MASK;
  unsigned answers = read_16(packet->bytes + ANSWERS_OFFSET);
  unsigned authorities = read_16(packet->bytes + AUTHORITIES_OFFSET);
  if (rcode != RCODE_NO_ERROR && rcode != RCODE_NO_NAME)
    return false;
  char owner[HOST_TEXT_SIZE];
  size_t at = HEADER_BYTES;
  if (!read_name(packet, &at, owner, sizeof owner) || packet->length - at < QUESTION_BYTES ||
      strcasecmp(owner, name) != 0)
    return false;
  at += QUESTION_BYTES;
  if (rcode == RCODE_NO_ERROR) {
    unsigned looked_at = lesser(answers, RESOLVER_RECORDS_MAX);
    answer->ttl_s = RESOLVER_TTL_MAX_S;
    if (!follow_aliases(packet, at, looked_at, owner, &answer->ttl_s) ||
        !collect_addresses(packet, at, looked_at, owner, family, answer))
      return false;
  }
  answer->status = answer->addresses.count > 0 ? LOOKUP_FOUND : LOOKUP_NO_NAME;
  if (answer->status == LOOKUP_NO_NAME)
    answer->ttl_s =
      answers > RESOLVER_RECORDS_MAX ? 0 : negative_ttl(packet, at, answers, lesser(authorities, RESOLVER_RECORDS_MAX));
  return true;
}

void answer_read(const unsigned char *packet, size_t length, const char *name, unsigned family, struct answer *ret)
{
  struct packet whole = {.bytes = packet, .length = length};
  *ret = (struct answer){0};
  if (!read_sections(&whole, name, family, ret))
    *ret = (struct answer){.status = LOOKUP_FAILED};
}
