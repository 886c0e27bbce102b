/* Refusals, limits and what goes wrong between worker and parent. */
#include <criterion/criterion.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/worker_stage.h"

#define HEAD "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n"

TestSuite(worker_verdict, .timeout = 60);

static void start(void)
{
  struct stage_options options = stage_defaults();
  stage_start(&options);
}

static void stop(void)
{
  cr_assert_eq(stage_stop(), 1);
}

static uint64_t ask(int *ret_client)
{
  *ret_client = stage_client();
  stage_write_text(*ret_client, HEAD);
  struct msg_ask_egress message = stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS;
  cr_assert_str_eq(message.host, "origin.test");
  cr_assert_eq(message.port, 443);
  return message.ask;
}

static void expect_answer(int client, const char *status, const char *error)
{
  char answer[8192] = "";
  size_t length = stage_read_all(client, answer, sizeof answer);
  cr_assert_gt(length, 0, "no answer");
  cr_assert_eq(strncmp(answer, "HTTP/1.1 ", 9), 0);
  cr_assert_eq(strncmp(answer + 9, status, 3), 0, "%s instead of %s", answer, status);
  cr_assert(strstr(answer, error), "%s is not in: %s", error, answer);
  close(client);
}

Test(worker_verdict, a_refusal_reaches_a_client_that_goes_on_sending)
{
  static char more[100 * 1024];
  int client;
  start();
  uint64_t id = ask(&client);
  stage_refuse(id, REASON_NOT_ALLOWED);
  stage_write(client, more, sizeof more);
  expect_answer(client, "403", "blocked-by-allowlist");
  stage_fence();
  cr_assert_eq(counter_read(stage_counters, COUNTER_ANSWERED_REFUSAL), 1);
  cr_assert_eq(counter_read(stage_counters, COUNTER_SESSIONS_OPEN), 0);
  stop();
}

Test(worker_verdict, a_refusal_without_reason_is_never_a_200)
{
  int client;
  start();
  uint64_t id = ask(&client);
  stage_refuse(id, REASON_NONE);
  expect_answer(client, "503", "internal-error");
  stop();
}

Test(worker_verdict, a_malformed_request_is_recorded_with_the_client_and_then_answered)
{
  int descriptor;
  start();
  int client = stage_client();
  stage_pause();
  stage_write_text(client, "CONNECT nowhere HTTP/1.1\r\nHost: nowhere\r\n\r\n");
  stage_continue();
  struct msg_worker_refused refused = stage_receive(MSG_WORKER_REFUSED, &descriptor).WORKER_REFUSED;
  cr_assert_eq(refused.reason, REASON_BAD_REQUEST);
  struct sockaddr_storage theirs;
  struct sockaddr_storage ours;
  socklen_t length = sizeof theirs;
  cr_assert_eq(getpeername(descriptor, (struct sockaddr *)&theirs, &length), 0);
  cr_assert_eq(getsockname(client, (struct sockaddr *)&ours, &length), 0);
  cr_assert_eq(memcmp(&theirs, &ours, length), 0);
  close(descriptor);
  expect_answer(client, "400", "bad-request");
  stop();
}

Test(worker_verdict, an_answer_that_does_not_come_is_a_504)
{
  struct stage_options options = stage_defaults();
  int client;
  options.settings.answer_timeout_ms = 100;
  stage_start(&options);
  uint64_t id = ask(&client);
  cr_assert_eq(stage_receive(MSG_ABANDON, NULL).ABANDON.ask, id);
  expect_answer(client, "504", "connection-timeout");
  int far = stage_grant(id, 5);
  stage_closed(5, ENDING_CLIENT_GONE);
  stage_expect_end(far);
  close(far);
  stop();
}

Test(worker_verdict, a_grant_whose_descriptor_is_lost_is_a_503)
{
  int client;
  start();
  uint64_t id = ask(&client);
  struct rlimit none = {.rlim_cur = 3, .rlim_max = 1024};
  cr_assert_eq(prlimit(stage_worker, RLIMIT_NOFILE, &none, NULL), 0);
  int far = stage_grant(id, 6);
  stage_closed(6, ENDING_LOST);
  expect_answer(client, "503", "internal-error");
  stage_expect_end(far);
  close(far);
  stop();
}

Test(worker_verdict, shortage_of_descriptors_pauses_accepting_and_ends)
{
  start();
  struct rlimit none = {.rlim_cur = 3, .rlim_max = 1024};
  cr_assert_eq(prlimit(stage_worker, RLIMIT_NOFILE, &none, NULL), 0);
  int client = stage_client();
  stage_write_text(client, HEAD);
  while (counter_read(stage_counters, COUNTER_ACCEPT_PAUSES) < 2)
    sched_yield();
  cr_assert_leq(counter_read(stage_counters, COUNTER_ACCEPT_PAUSES), 3); /* a retry each time, not a spin */
  none.rlim_cur = 1024;
  cr_assert_eq(prlimit(stage_worker, RLIMIT_NOFILE, &none, NULL), 0);
  uint64_t id = stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask;
  stage_refuse(id, REASON_DENIED);
  expect_answer(client, "403", "blocked-by-allowlist");
  stop();
}

Test(worker_verdict, deadlines_of_different_length_come_each_in_its_time)
{
  struct stage_options options = stage_defaults();
  int client;
  options.settings.head_timeout_ms = 50;
  options.settings.answer_timeout_ms = 150;
  stage_start(&options);
  int silent = stage_client();
  uint64_t id = ask(&client);
  stage_expect_end(silent);
  close(silent);
  cr_assert_eq(stage_receive(MSG_ABANDON, NULL).ABANDON.ask, id);
  expect_answer(client, "504", "connection-timeout");
  stop();
}

Test(worker_verdict, heads_that_were_begun_wait_for_credit)
{
  struct stage_options options = stage_defaults();
  int clients[3];
  options.settings.credit = 1;
  stage_start(&options);
  for (int i = 1; i < 3; i++) {
    clients[i] = stage_client();
    stage_write(clients[i], HEAD, 10);
    stage_fence();
  }
  uint64_t id = ask(&clients[0]);
  for (int i = 1; i < 3; i++)
    stage_write_text(clients[i], &HEAD[10]);
  for (int i = 0; i < 3; i++) {
    cr_assert(stage_silent());
    stage_refuse(id, REASON_DENIED);
    expect_answer(clients[i], "403", "blocked-by-allowlist");
    if (i < 2)
      id = stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask;
  }
  stop();
}

/* The budget is used up by a tunnel whose upstream does not read. */
Test(worker_verdict, without_memory_an_incomplete_head_waits_and_others_are_served)
{
  struct stage_options options = stage_defaults();
  static char flood[64 * 1024];
  int client;
  int far;
  options.small_sockets = true;
  options.settings.buffered_total_bytes = 100;
  stage_start(&options);
  stage_tunnel(3, &client, &far);
  int starved = stage_client();
  stage_write(starved, HEAD, 10);
  stage_fence();
  struct pollfd writable = {.fd = client, .events = POLLOUT};
  while (poll(&writable, 1, 500) == 1)
    send(client, flood, sizeof flood, MSG_DONTWAIT);
  stage_fence();
  stage_write_text(starved, &HEAD[10]);
  stage_fence();
  cr_assert(stage_silent());
  stage_reset(client);
  uint64_t id = stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask;
  stage_closed(3, ENDING_CLIENT_RESET); /* reports wait for a message that must go anyway */
  close(far);
  stage_refuse(id, REASON_DENIED);
  expect_answer(starved, "403", "blocked-by-allowlist");
  stop();
}

Test(worker_verdict, without_credit_heads_wait_in_order)
{
  struct stage_options options = stage_defaults();
  int clients[4];
  options.settings.credit = 1;
  stage_start(&options);
  uint64_t id = ask(&clients[0]);
  for (int i = 1; i < 4; i++) {
    clients[i] = stage_client();
    stage_write_text(clients[i], HEAD);
  }
  for (int i = 0; i < 4; i++) {
    cr_assert(stage_silent());
    stage_refuse(id, REASON_DENIED);
    expect_answer(clients[i], "403", "blocked-by-allowlist");
    if (i < 3)
      id = stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask;
  }
  stop();
}

Test(worker_verdict, the_limit_of_sessions_pauses_accepting)
{
  struct stage_options options = stage_defaults();
  int first;
  int second;
  options.settings.sessions_max = 1;
  stage_start(&options);
  uint64_t id = ask(&first);
  second = stage_client();
  stage_write_text(second, HEAD);
  cr_assert(stage_silent());
  cr_assert_eq(counter_read(stage_counters, COUNTER_ACCEPTED), 1);
  stage_refuse(id, REASON_DENIED);
  expect_answer(first, "403", "blocked-by-allowlist");
  id = stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask;
  stage_refuse(id, REASON_DENIED);
  expect_answer(second, "403", "blocked-by-allowlist");
  stop();
}

Test(worker_verdict, a_parent_that_does_not_read_delays_and_loses_nothing)
{
  enum { CLIENTS = 40 };
  struct stage_options options = stage_defaults();
  int clients[CLIENTS];
  options.small_channel = true;
  stage_start(&options);
  for (int i = 0; i < CLIENTS; i++) {
    clients[i] = stage_client();
    stage_write_text(clients[i], i % 4 == 3 ? "CONNECT nowhere HTTP/1.1\r\nHost: nowhere\r\n\r\n" : HEAD);
  }
  int asks = 0;
  for (int i = 0; i < CLIENTS; i++) {
    if (i % 4 == 3) {
      stage_receive(MSG_WORKER_REFUSED, NULL);
      continue;
    }
    asks++;
    stage_refuse(stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask, REASON_DENIED);
  }
  cr_assert_eq(asks, CLIENTS * 3 / 4);
  for (int i = 0; i < CLIENTS; i++)
    expect_answer(clients[i], i % 4 == 3 ? "400" : "403", "X-Proxy-Error: ");
  stop();
}

Test(worker_verdict, a_slow_head_is_a_408_and_silence_gets_no_byte)
{
  struct stage_options options = stage_defaults();
  options.settings.head_timeout_ms = 100;
  stage_start(&options);
  int silent = stage_client();
  int slow = stage_client();
  stage_write_text(slow, "CONNECT origin.test:443 HTTP/1.1\r\n");
  cr_assert_eq(stage_receive(MSG_WORKER_REFUSED, NULL).WORKER_REFUSED.reason, REASON_REQUEST_TIMEOUT);
  expect_answer(slow, "408", "request-timeout");
  stage_expect_end(silent);
  close(silent);
  stop();
}

Test(worker_verdict, a_head_in_pieces_is_one_head)
{
  static const char head[] = HEAD;
  start();
  int client = stage_client();
  for (size_t i = 0; i < sizeof head - 1; i += 9) {
    stage_write(client, head + i, sizeof head - 1 - i < 9 ? sizeof head - 1 - i : 9);
    if (i % 18 == 0 && i + 18 < sizeof head)
      stage_fence();
  }
  uint64_t id = stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask;
  stage_refuse(id, REASON_DENIED);
  expect_answer(client, "403", "blocked-by-allowlist");
  stop();
}

Test(worker_verdict, a_message_that_breaks_the_rules_ends_the_worker)
{
  start();
  struct msg_listener listener = {.type = MSG_LISTENER, .descriptor = CHILD_LISTENER_FD_END};
  stage_send(&listener, -1);
  cr_assert_eq(stage_await_end(), 1);
}

Test(worker_verdict, one_worker_wakes_for_a_client_not_all)
{
  start();
  stage_fence();
  cr_assert(stage_watches_exclusively(CHILD_LISTENER_FD_FIRST));
  stop();
}
