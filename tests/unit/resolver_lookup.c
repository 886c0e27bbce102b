#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/resolver_bench.h"

#define TIMEOUT_MS 5000
#define SHORT_MS 300

TestSuite(resolver_lookup, .init = bench_start, .fini = bench_stop, .timeout = 60);

static struct packet_bytes packet;

static void begin(const struct bench_question *question, unsigned rcode)
{
  packet_begin(&packet, question->id, rcode, question->name, question->type);
}

static void one_address(const struct bench_question *question)
{
  begin(question, PACKET_NO_ERROR);
  packet_address(&packet, question->name, question->type, 60, 1);
  bench_reply(question, &packet);
}

static void v4_only(const struct bench_question *question)
{
  begin(question, PACKET_NO_ERROR);
  if (question->type == PACKET_A)
    packet_address(&packet, question->name, PACKET_A, 60, 1);
  else
    packet_soa(&packet, 60, 60);
  bench_reply(question, &packet);
}

Test(resolver_lookup, both_families_by_turns)
{
  bench_nameserver = one_address;
  bench_settings(1, TIMEOUT_MS);
  struct msg_lookup_answer answer = bench_resolve("a.test");
  cr_assert_eq(answer.status, LOOKUP_FOUND);
  cr_assert_eq(answer.count, 2);
  cr_expect_eq(answer.addresses[0].family, 6);
  cr_expect_eq(answer.addresses[1].family, 4);
  cr_expect_eq(answer.addresses[1].bytes[0], 192);
  cr_expect_eq(answer.addresses[2].family, 0);
}

Test(resolver_lookup, found_is_cached)
{
  bench_nameserver = v4_only;
  bench_settings(1, TIMEOUT_MS);
  for (int i = 0; i < 3; i++) {
    struct msg_lookup_answer answer = bench_resolve("a.test");
    cr_assert_eq(answer.status, LOOKUP_FOUND);
    cr_assert_eq(answer.count, 1);
  }
  cr_expect_eq(bench_questions, 2u);
}

static void no_such_name(const struct bench_question *question)
{
  begin(question, PACKET_NXDOMAIN);
  if (strcmp(question->name, "soa.test") == 0)
    packet_soa(&packet, 60, 60);
  bench_reply(question, &packet);
}

Test(resolver_lookup, no_such_name_is_cached_by_its_soa)
{
  bench_nameserver = no_such_name;
  bench_settings(1, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("soa.test").status, LOOKUP_NO_NAME);
  cr_expect_eq(bench_resolve("soa.test").status, LOOKUP_NO_NAME);
  cr_expect_eq(bench_questions, 2u);
  cr_expect_eq(bench_resolve("bare.test").status, LOOKUP_NO_NAME);
  cr_expect_eq(bench_resolve("bare.test").status, LOOKUP_NO_NAME);
  cr_expect_eq(bench_questions, 6u);
}

static void fails(const struct bench_question *question)
{
  begin(question, question->name[0] == 's'   ? PACKET_SERVFAIL
                  : question->name[0] == 'r' ? PACKET_REFUSED
                                             : PACKET_NO_ERROR);
  if (question->name[0] == 'm')
    packet_count(&packet, PACKET_ANSWER);
  bench_reply(question, &packet);
}

Test(resolver_lookup, failures_are_not_cached)
{
  static const char *const names[] = {"servfail.test", "refused.test", "malformed.test"};
  bench_nameserver = fails;
  bench_settings(1, TIMEOUT_MS);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    cr_expect_eq(bench_resolve(names[i]).status, LOOKUP_FAILED, "%s", names[i]);
  bench_nameserver = one_address;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    cr_expect_eq(bench_resolve(names[i]).status, LOOKUP_FOUND, "%s", names[i]);
}

static void v6_fails(const struct bench_question *question)
{
  if (question->type == PACKET_A) {
    one_address(question);
    return;
  }
  begin(question, PACKET_REFUSED);
  bench_reply(question, &packet);
}

Test(resolver_lookup, one_failed_family_does_not_matter)
{
  bench_nameserver = v6_fails;
  bench_settings(1, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FOUND);
}

Test(resolver_lookup, silence_times_out)
{
  bench_settings(1, SHORT_MS);
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_TIMED_OUT);
}

static struct bench_question held;

static void v6_held(const struct bench_question *question)
{
  if (question->type == PACKET_AAAA)
    held = *question;
  else
    one_address(question);
}

Test(resolver_lookup, late_family_is_not_waited_for_and_completes_the_cache)
{
  bench_nameserver = v6_held;
  bench_settings(1, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("a.test").count, 1);
  cr_expect_eq(bench_resolve("a.test").count, 1);
  one_address(&held);
  /* What comes after on the channel is served after what came before on the sockets has been. */
  struct msg_lookup_answer answer;
  do
    answer = bench_resolve("a.test");
  while (answer.count == 1);
  cr_expect_eq(answer.count, 2);
  cr_expect_eq(bench_questions, 2u);
}

static void rebinds(const struct bench_question *question)
{
  begin(question, PACKET_NO_ERROR);
  if (question->type == PACKET_A)
    packet_address(&packet, question->name, PACKET_A, 0, bench_questions > 2 ? 2 : 1);
  bench_reply(question, &packet);
}

Test(resolver_lookup, zero_ttl_holds_once)
{
  bench_nameserver = rebinds;
  bench_settings(1, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("a.test").addresses[0].bytes[3], 1);
  cr_expect_eq(bench_resolve("a.test").addresses[0].bytes[3], 2);
}

Test(resolver_lookup, same_name_is_asked_once)
{
  bench_settings(1, TIMEOUT_MS);
  bench_lookup(1, "a.test");
  bench_lookup(2, "a.test");
  bench_await_questions(2);
  bench_lookup(3, "a.test");
  bench_hosts("10.0.0.1 marker.test\n");
  cr_assert_eq(bench_resolve("marker.test").status, LOOKUP_FOUND);
  cr_expect_eq(bench_questions, 2u);
  for (unsigned i = 0; i < 2; i++)
    one_address(&bench_asked[i]);
  for (uint64_t id = 1; id <= 3; id++)
    cr_expect_eq(bench_answer(id).count, 2);
}

Test(resolver_lookup, too_many_are_refused)
{
  bench_settings(1, 900);
  char name[32];
  for (unsigned i = 1; i <= RESOLVER_LOOKUPS_MAX + 1; i++) {
    snprintf(name, sizeof name, "n%u.test", i);
    bench_lookup(i, name);
  }
  cr_expect_eq(bench_answer(RESOLVER_LOOKUPS_MAX + 1).status, LOOKUP_OVERLOADED);
  /* Those that had a channel at once are met with silence; the others get theirs when these have timed out. */
  bench_await_questions(RESOLVER_CHANNELS);
  bench_nameserver = one_address;
  cr_expect_eq(bench_answer(1).status, LOOKUP_TIMED_OUT);
  for (unsigned i = 2; i <= RESOLVER_LOOKUPS_MAX; i++)
    (void)bench_answer(i);
  cr_expect_eq(bench_resolve("after.test").status, LOOKUP_FOUND);
}

static void truncates(const struct bench_question *question)
{
  begin(question, PACKET_NO_ERROR);
  if (question->tcp)
    for (unsigned i = 0; i < 300; i++)
      packet_address(&packet, question->name, question->type, 60, i);
  else
    packet_truncated(&packet);
  bench_reply(question, &packet);
}

Test(resolver_lookup, truncated_is_asked_by_tcp)
{
  bench_nameserver = truncates;
  bench_settings(1, TIMEOUT_MS);
  struct msg_lookup_answer answer = bench_resolve("a.test");
  cr_assert_eq(answer.status, LOOKUP_FOUND);
  cr_expect_eq(answer.count, LOOKUP_ADDRESSES_MAX);
  unsigned families[7] = {0};
  for (unsigned i = 0; i < answer.count; i++)
    families[answer.addresses[i].family]++;
  cr_expect_eq(families[4], LOOKUP_ADDRESSES_MAX / 2u, "neither family crowds out the other");
}

static bool no_tcp(unsigned server, enum socket_kind kind)
{
  (void)server;
  return kind == SOCKET_TCP;
}

Test(resolver_lookup, tcp_that_cannot_be_had)
{
  bench_nameserver = truncates;
  bench_refuses = no_tcp;
  bench_settings(1, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FAILED);
}

static void forges_first(const struct bench_question *question)
{
  for (unsigned i = 1; i <= 10; i++) {
    packet_begin(&packet, question->id + i, PACKET_NO_ERROR, question->name, question->type);
    packet_address(&packet, question->name, question->type, 60, 66);
    bench_reply(question, &packet);
  }
  packet_begin(&packet, question->id, PACKET_NO_ERROR, "other.test", question->type);
  packet_address(&packet, "other.test", question->type, 60, 66);
  bench_reply(question, &packet);
  packet.length = 0;
  bench_reply(question, &packet);
  v4_only(question);
}

Test(resolver_lookup, wrong_ids_and_questions_are_passed_over)
{
  bench_nameserver = forges_first;
  bench_settings(1, TIMEOUT_MS);
  struct msg_lookup_answer answer = bench_resolve("a.test");
  cr_assert_eq(answer.count, 1);
  cr_expect_eq(answer.addresses[0].bytes[3], 1);
  cr_expect_eq(bench_questions, 2u);
}

static unsigned flooded_socket;
static bool flooded;

/* The whole space of ids but the right one; what no longer fits the socket's queue is lost. */
static void floods_first_socket(const struct bench_question *question)
{
  if (question->type == PACKET_AAAA || (flooded && question->socket_number != flooded_socket)) {
    v4_only(question);
    return;
  }
  flooded = true;
  flooded_socket = question->socket_number;
  packet_begin(&packet, 0, PACKET_NO_ERROR, question->name, question->type);
  packet_address(&packet, question->name, question->type, 60, 66);
  for (unsigned i = 1; i < 65536; i++) {
    unsigned id = (question->id + i) & 0xffff;
    packet.bytes[0] = (unsigned char)(id >> 8);
    packet.bytes[1] = (unsigned char)id;
    if (!bench_reply_all(question, &packet))
      return;
  }
  cr_assert_fail("the resolver read every forged answer");
}

Test(resolver_lookup, a_flooded_port_is_given_up)
{
  bench_nameserver = floods_first_socket;
  bench_settings(1, TIMEOUT_MS);
  struct msg_lookup_answer answer = bench_resolve("a.test");
  cr_assert_eq(answer.status, LOOKUP_FOUND);
  cr_expect_eq(answer.addresses[0].bytes[3], 1);
  cr_expect(flooded);
}

static bool first_server_down(unsigned server, enum socket_kind kind)
{
  (void)kind;
  return server == 0;
}

Test(resolver_lookup, next_nameserver_when_a_socket_cannot_be_had)
{
  bench_nameserver = one_address;
  bench_refuses = first_server_down;
  bench_settings(1, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FAILED);
  bench_settings(2, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FOUND);
  cr_expect_eq(bench_asked[0].server, 1u);
}

static void second_server_only(const struct bench_question *question)
{
  if (question->server == 1) {
    one_address(question);
    return;
  }
  begin(question, PACKET_SERVFAIL);
  bench_reply(question, &packet);
}

Test(resolver_lookup, next_nameserver_when_one_fails)
{
  bench_nameserver = second_server_only;
  bench_settings(2, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FOUND);
}

Test(resolver_lookup, hosts_file_first)
{
  bench_nameserver = one_address;
  bench_settings(1, TIMEOUT_MS);
  bench_hosts("10.0.0.1 a.test\n10.0.0.2 A.test b.test\n");
  struct msg_lookup_answer answer = bench_resolve("a.test");
  cr_assert_eq(answer.count, 2);
  cr_expect_eq(answer.addresses[1].bytes[3], 2);
  cr_expect_eq(bench_questions, 0u);
  bench_hosts("10.0.0.3 a.test\n");
  answer = bench_resolve("a.test");
  cr_assert_eq(answer.count, 1);
  cr_expect_eq(answer.addresses[0].bytes[3], 3);
  cr_expect_eq(bench_questions, 0u);
  cr_expect_eq(bench_resolve("b.test").count, 2);
  cr_expect_eq(bench_questions, 2u);
}

Test(resolver_lookup, nothing_is_lost_when_the_parent_does_not_read)
{
  enum { LOOKUPS = 1000 };
  bench_squeeze();
  bench_settings(0, TIMEOUT_MS);
  bench_hosts("10.0.0.1 a.test\n");
  for (uint64_t id = 1; id <= LOOKUPS; id++)
    bench_lookup(id, id % 2 ? "a.test" : "b.test");
  for (uint64_t id = 1; id <= LOOKUPS; id++)
    cr_assert_eq(bench_answer(id).status, id % 2 ? LOOKUP_FOUND : LOOKUP_FAILED);
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FOUND);
}

Test(resolver_lookup, many_answers_at_once_to_a_parent_that_does_not_read)
{
  enum { LOOKUPS = 100 };
  bench_squeeze();
  bench_settings(1, TIMEOUT_MS);
  for (uint64_t id = 1; id <= LOOKUPS; id++)
    bench_lookup(id, "a.test");
  bench_await_questions(2);
  for (unsigned i = 0; i < 2; i++)
    one_address(&bench_asked[i]);
  for (uint64_t id = 1; id <= LOOKUPS; id++)
    cr_assert_eq(bench_answer(id).count, 2);
}

Test(resolver_lookup, no_nameservers)
{
  bench_settings(0, TIMEOUT_MS);
  bench_hosts("10.0.0.1 a.test\n");
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FOUND);
  cr_expect_eq(bench_resolve("b.test").status, LOOKUP_FAILED);
}

Test(resolver_lookup, new_settings_forget_the_old_answers)
{
  bench_nameserver = one_address;
  bench_settings(1, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FOUND);
  bench_settings(1, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FOUND);
  cr_expect_eq(bench_questions, 4u);
}

Test(resolver_lookup, answers_of_former_nameservers_are_not_kept)
{
  bench_settings(1, TIMEOUT_MS);
  bench_lookup(1, "a.test");
  bench_await_questions(2);
  bench_settings(1, TIMEOUT_MS);
  bench_hosts("10.0.0.1 marker.test\n");
  cr_assert_eq(bench_resolve("marker.test").status, LOOKUP_FOUND);
  for (unsigned i = 0; i < 2; i++)
    one_address(&bench_asked[i]);
  cr_expect_eq(bench_answer(1).status, LOOKUP_FOUND);
  bench_nameserver = one_address;
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FOUND);
  cr_expect_eq(bench_questions, 4u);
}

Test(resolver_lookup, names_that_are_none_are_not_asked)
{
  bench_nameserver = one_address;
  bench_settings(1, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("A.test").status, LOOKUP_FAILED);
  cr_expect_eq(bench_resolve("192.0.2.1").status, LOOKUP_FAILED);
  cr_expect_eq(bench_resolve("a..test").status, LOOKUP_FAILED);
  cr_expect_eq(bench_resolve("").status, LOOKUP_FAILED);
  cr_expect_eq(bench_questions, 0u);
}

static int by_value(const void *a, const void *b)
{
  return *(const int *)a - *(const int *)b;
}

Test(resolver_lookup, every_question_has_its_socket_and_id)
{
  bench_nameserver = one_address;
  bench_settings(1, TIMEOUT_MS);
  enum { NAMES = 200 };
  for (unsigned i = 0; i < NAMES; i++) {
    char name[32];
    snprintf(name, sizeof name, "n%u.test", i);
    cr_assert_eq(bench_resolve(name).status, LOOKUP_FOUND);
  }
  cr_assert_eq(bench_questions, 2u * NAMES);
  int sockets[2 * NAMES], ids[2 * NAMES];
  for (unsigned i = 0; i < 2 * NAMES; i++) {
    sockets[i] = (int)bench_asked[i].socket_number;
    ids[i] = (int)bench_asked[i].id;
  }
  qsort(sockets, 2 * NAMES, sizeof(int), by_value);
  qsort(ids, 2 * NAMES, sizeof(int), by_value);
  unsigned same_ids = 0;
  for (unsigned i = 1; i < 2 * NAMES; i++) {
    cr_assert_neq(sockets[i], sockets[i - 1]);
    same_ids += ids[i] == ids[i - 1];
  }
  /* 400 random numbers of 16 bits: one or two pairs alike are normal, twenty never happen. */
  cr_expect_lt(same_ids, 20u);
}

static unsigned open_descriptors(void)
{
  DIR *folder = opendir("/proc/self/fd");
  unsigned count = 0;
  while (readdir(folder))
    count++;
  closedir(folder);
  return count;
}

Test(resolver_end, leaves_no_descriptor_open)
{
  unsigned before = open_descriptors();
  bench_start();
  bench_nameserver = truncates;
  bench_settings(2, TIMEOUT_MS);
  cr_expect_eq(bench_resolve("a.test").status, LOOKUP_FOUND);
  bench_nameserver = NULL;
  bench_lookup(7, "b.test");
  bench_await_questions(6);
  cr_expect_eq(bench_end(), 0);
  bench_stop();
  cr_expect_eq(open_descriptors(), before);
}

Test(resolver_end, a_malformed_message_ends_it)
{
  bench_start();
  struct msg_lookup message = {.type = MSG_LOOKUP, .zero = 1};
  bench_send(&message, -1);
  bench_await_end();
  cr_expect_eq(bench_end(), -1);
  bench_stop();
}
