#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "child/resolver/answer.h"
#include "tests/unit/resolver_packet.h"

static struct packet_bytes packet;
static struct answer answer;

TestSuite(resolver_answer);

static void begin(unsigned rcode, const char *name, unsigned type)
{
  packet_begin(&packet, 7, rcode, name, type);
}

static enum lookup_status read_as(const char *name, unsigned family)
{
  answer_read(packet.bytes, packet.length, name, family, &answer);
  return answer.status;
}

Test(resolver_answer, addresses_and_least_ttl)
{
  begin(PACKET_NO_ERROR, "Www.Test", PACKET_A);
  packet_address(&packet, "www.test", PACKET_A, 300, 1);
  packet_address(&packet, "WWW.test", PACKET_A, 200, 2);
  packet_address(&packet, "www.test", PACKET_A, 400, 1);
  packet_address(&packet, "www.test", PACKET_AAAA, 10, 3);
  cr_assert_eq(read_as("www.test", 4), LOOKUP_FOUND);
  cr_expect_eq(answer.addresses.count, 2u);
  cr_expect_eq(answer.addresses.addresses[1].bytes[3], 2);
  cr_expect_eq(answer.ttl_s, 200u);
}

Test(resolver_answer, ttl_is_capped)
{
  begin(PACKET_NO_ERROR, "a.test", PACKET_A);
  packet_address(&packet, "a.test", PACKET_A, 86400, 1);
  cr_assert_eq(read_as("a.test", 4), LOOKUP_FOUND);
  cr_expect_eq(answer.ttl_s, (uint32_t)RESOLVER_TTL_MAX_S);
  packet_address(&packet, "a.test", PACKET_A, UINT32_C(0x80000000), 2);
  cr_assert_eq(read_as("a.test", 4), LOOKUP_FOUND);
  cr_expect_eq(answer.ttl_s, 0u);
}

Test(resolver_answer, other_names_are_ignored)
{
  begin(PACKET_NO_ERROR, "a.test", PACKET_A);
  packet_address(&packet, "b.test", PACKET_A, 300, 1);
  cr_expect_eq(read_as("a.test", 4), LOOKUP_NO_NAME);

  /* An alias of another name leads nowhere. */
  begin(PACKET_NO_ERROR, "a.test", PACKET_A);
  packet_cname(&packet, "b.test", 300, "c.test");
  packet_address(&packet, "c.test", PACKET_A, 300, 1);
  cr_expect_eq(read_as("a.test", 4), LOOKUP_NO_NAME);
  packet_address(&packet, "a.test", PACKET_A, 300, 2);
  cr_assert_eq(read_as("a.test", 4), LOOKUP_FOUND);
  cr_expect_eq(answer.addresses.count, 1u);
  cr_expect_eq(answer.addresses.addresses[0].bytes[3], 2);
}

Test(resolver_answer, aliases_in_any_order)
{
  begin(PACKET_NO_ERROR, "a.test", PACKET_AAAA);
  packet_address(&packet, "c.test", PACKET_AAAA, 300, 9);
  packet_cname(&packet, "b.test", 60, "C.test");
  packet_cname(&packet, "a.test", 120, "b.test");
  cr_assert_eq(read_as("a.test", 6), LOOKUP_FOUND);
  cr_expect_eq(answer.ttl_s, 60u);
  cr_expect_eq(answer.addresses.addresses[0].family, 6);
  cr_expect_eq(answer.addresses.addresses[0].bytes[15], 9);
}

Test(resolver_answer, alias_without_addresses_and_loops)
{
  begin(PACKET_NO_ERROR, "a.test", PACKET_A);
  packet_cname(&packet, "a.test", 120, "b.test");
  packet_soa(&packet, 50, 30);
  cr_expect_eq(read_as("a.test", 4), LOOKUP_NO_NAME);
  cr_expect_eq(answer.ttl_s, 30u);

  begin(PACKET_NO_ERROR, "a.test", PACKET_A);
  packet_cname(&packet, "a.test", 120, "b.test");
  packet_cname(&packet, "b.test", 120, "a.test");
  packet_address(&packet, "a.test", PACKET_A, 120, 1);
  cr_expect_eq(read_as("a.test", 4), LOOKUP_FAILED);
}

Test(resolver_answer, negative_ttl_by_soa)
{
  begin(PACKET_NXDOMAIN, "a.test", PACKET_A);
  cr_assert_eq(read_as("a.test", 4), LOOKUP_NO_NAME);
  cr_expect_eq(answer.ttl_s, 0u, "without SOA it is not kept");
  packet_soa(&packet, 10, 40);
  cr_assert_eq(read_as("a.test", 4), LOOKUP_NO_NAME);
  cr_expect_eq(answer.ttl_s, 10u);
  begin(PACKET_NO_ERROR, "a.test", PACKET_A);
  packet_soa(&packet, 7200, 3600);
  cr_assert_eq(read_as("a.test", 4), LOOKUP_NO_NAME);
  cr_expect_eq(answer.ttl_s, (uint32_t)RESOLVER_TTL_NEGATIVE_MAX_S);
}

Test(resolver_answer, no_name_outranks_its_records)
{
  begin(PACKET_NXDOMAIN, "a.test", PACKET_A);
  packet_address(&packet, "a.test", PACKET_A, 300, 1);
  cr_expect_eq(read_as("a.test", 4), LOOKUP_NO_NAME);
  cr_expect_eq(answer.addresses.count, 0u);
}

Test(resolver_answer, failures)
{
  static const unsigned rcodes[] = {PACKET_FORMERR, PACKET_SERVFAIL, 4, PACKET_REFUSED, 15};
  for (size_t i = 0; i < sizeof rcodes / sizeof rcodes[0]; i++) {
    begin(rcodes[i], "a.test", PACKET_A);
    packet_address(&packet, "a.test", PACKET_A, 300, 1);
    cr_expect_eq(read_as("a.test", 4), LOOKUP_FAILED);
  }
  begin(PACKET_NO_ERROR, "b.test", PACKET_A);
  packet_address(&packet, "b.test", PACKET_A, 300, 1);
  cr_expect_eq(read_as("a.test", 4), LOOKUP_FAILED, "the answer to another question");
  begin(PACKET_NO_ERROR, "a.test", PACKET_A);
  packet_record(&packet, PACKET_ANSWER, "a.test", PACKET_A, 300, "abc", 3);
  cr_expect_eq(read_as("a.test", 4), LOOKUP_FAILED, "an address of three bytes");
}

Test(resolver_answer, cut_anywhere)
{
  begin(PACKET_NO_ERROR, "a.test", PACKET_A);
  packet_cname(&packet, "a.test", 120, "b.test");
  packet_address(&packet, "b.test", PACKET_A, 300, 1);
  size_t whole = packet.length;
  for (size_t length = 0; length < whole; length++) {
    /* A copy of exactly this size: a sanitizer sees any byte that is read past it. */
    unsigned char *copy = malloc(length + (length == 0));
    memcpy(copy, packet.bytes, length);
    answer_read(copy, length, "a.test", 4, &answer);
    free(copy);
    cr_assert_eq(answer.status, LOOKUP_FAILED, "cut at %zu", length);
  }
  cr_expect_eq(read_as("a.test", 4), LOOKUP_FOUND);
}

Test(resolver_answer, compression_loop)
{
  begin(PACKET_NO_ERROR, "a.test", PACKET_A);
  packet_count(&packet, PACKET_ANSWER);
  packet_16(&packet, 0xc000 | (unsigned)packet.length);
  packet_32(&packet, 0);
  packet_32(&packet, 0);
  packet_16(&packet, 0);
  cr_expect_eq(read_as("a.test", 4), LOOKUP_FAILED);
}

Test(resolver_answer, hundreds_of_addresses)
{
  begin(PACKET_NO_ERROR, "a.test", PACKET_AAAA);
  for (unsigned i = 0; i < 700; i++)
    packet_address(&packet, "a.test", PACKET_AAAA, 300, i);
  cr_assert_eq(read_as("a.test", 6), LOOKUP_FOUND);
  cr_expect_eq(answer.addresses.count, (size_t)LOOKUP_ADDRESSES_MAX);
  cr_expect_eq(answer.addresses.addresses[5].bytes[15], 5);
}

/* Not a fuzzer; a first sieve in every run. */
Test(resolver_answer, flipped_bytes)
{
  begin(PACKET_NO_ERROR, "a.test", PACKET_A);
  packet_cname(&packet, "a.test", 120, "b.test");
  packet_address(&packet, "b.test", PACKET_A, 300, 1);
  packet_soa(&packet, 10, 40);
  size_t length = packet.length;
  for (size_t at = 0; at < length; at++)
    for (unsigned bit = 0; bit < 8; bit++) {
      unsigned char *copy = malloc(length);
      memcpy(copy, packet.bytes, length);
      copy[at] ^= (unsigned char)(1 << bit);
      answer_read(copy, length, "a.test", 4, &answer);
      free(copy);
      cr_assert_eq(answer.status == LOOKUP_FOUND, answer.addresses.count > 0);
    }
}
