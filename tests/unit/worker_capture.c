/* Between the request and the 200: what comes early is kept, counted and replayed; who goes away has given up. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/worker_stage.h"

#define HEAD "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n"
#define EXCEEDED "CONNECT client exceeded pre-establishment capture cap; destroying"

static char early[CAPTURE_BYTES_MAX + 1];
static char got[CAPTURE_BYTES_MAX + 1];

static void start(void)
{
  struct stage_options options = stage_defaults();
  stage_start(&options);
  for (size_t i = 0; i < sizeof early; i++)
    early[i] = (char)stage_byte(1, i);
}

static void stop(void)
{
  cr_assert_eq(stage_stop(), 1); /* the parent was gone first */
}

TestSuite(worker_capture, .init = start, .fini = stop, .timeout = 60);

/* `with_head` bytes in the same write as the head, the others behind it. */
static int ask_with(size_t with_head, size_t behind, uint64_t *ret_ask)
{
  int client = stage_client();
  char *first = malloc(sizeof HEAD + with_head);
  memcpy(first, HEAD, sizeof HEAD - 1);
  memcpy(first + sizeof HEAD - 1, early, with_head);
  stage_write(client, first, sizeof HEAD - 1 + with_head);
  free(first);
  *ret_ask = stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask;
  stage_write(client, early + with_head, behind);
  return client;
}

static void replayed(size_t with_head, size_t behind)
{
  uint64_t ask;
  int client = ask_with(with_head, behind, &ask);
  stage_fence();
  cr_assert_not(stage_logged(EXCEEDED));
  int far = stage_grant(ask, 7);
  char answer[39];
  stage_read(client, answer, sizeof answer);
  stage_write_text(client, "later");
  stage_read(far, got, with_head + behind);
  cr_assert_eq(memcmp(got, early, with_head + behind), 0);
  stage_read(far, got, 5);
  cr_assert_eq(memcmp(got, "later", 5), 0);
  close(client);
  stage_expect_end(far);
  close(far);
  cr_assert_eq(stage_closed(7, ENDING_FINISHED).bytes_up, with_head + behind + 5);
}

Test(worker_capture, bytes_of_the_head_read_and_later_ones_are_replayed_in_order)
{
  replayed(1000, 3000);
}

Test(worker_capture, exactly_the_cap_is_accepted)
{
  replayed(0, CAPTURE_BYTES_MAX);
}

Test(worker_capture, exactly_the_cap_is_accepted_when_part_of_it_came_with_the_head)
{
  replayed(40000, CAPTURE_BYTES_MAX - 40000);
}

Test(worker_capture, early_bytes_behind_a_head_in_pieces_are_replayed)
{
  int client = stage_client();
  stage_write(client, HEAD, 20);
  stage_fence();
  stage_write_text(client, &(HEAD "early")[20]);
  int far = stage_grant(stage_receive(MSG_ASK_EGRESS, NULL).ASK_EGRESS.ask, 7);
  stage_read(far, got, 5);
  cr_assert_eq(memcmp(got, "early", 5), 0);
  stage_reset(client);
  stage_closed(7, ENDING_CLIENT_RESET);
  close(far);
}

static void destroyed(size_t with_head, size_t behind)
{
  uint64_t ask;
  int client = ask_with(with_head, behind, &ask);
  cr_assert_eq(stage_receive(MSG_ABANDON, NULL).ABANDON.ask, ask);
  stage_expect_reset(client);
  close(client);
  cr_assert(stage_logged("msg=\"" EXCEEDED "\""));
  cr_assert_eq(counter_read(stage_counters, COUNTER_CAPTURE_EXCEEDED), 1);
}

Test(worker_capture, one_byte_more_destroys)
{
  destroyed(0, CAPTURE_BYTES_MAX + 1);
}

Test(worker_capture, one_byte_more_destroys_when_part_came_with_the_head)
{
  destroyed(40000, CAPTURE_BYTES_MAX + 1 - 40000);
}

Test(worker_capture, end_of_stream_is_abandonment_and_a_late_grant_is_closed)
{
  uint64_t ask;
  int client = ask_with(10, 10, &ask);
  size_t descriptors = stage_descriptors();
  cr_assert_eq(shutdown(client, SHUT_WR), 0);
  cr_assert_eq(stage_receive(MSG_ABANDON, NULL).ABANDON.ask, ask);
  stage_expect_end(client);
  int far = stage_grant(ask, 8);
  stage_closed(8, ENDING_CLIENT_GONE);
  stage_expect_end(far);
  cr_assert_eq(counter_read(stage_counters, COUNTER_LATE_VERDICTS), 1);
  cr_assert_eq(counter_read(stage_counters, COUNTER_GONE_BEFORE_VERDICT), 1);
  cr_assert_eq(counter_read(stage_counters, COUNTER_ANSWERED_200), 0);
  cr_assert_eq(stage_descriptors(), descriptors - 1);
  close(client);
  close(far);
}

Test(worker_capture, a_late_grant_never_meets_a_later_ask)
{
  uint64_t first;
  uint64_t second;
  int gone = ask_with(0, 0, &first);
  stage_reset(gone);
  stage_receive(MSG_ABANDON, NULL);
  int client = ask_with(0, 0, &second); /* it has the first one's slot */
  int late = stage_grant(first, 8);
  stage_closed(8, ENDING_CLIENT_GONE);
  stage_expect_end(late);
  close(late);
  int far = stage_grant(second, 9);
  char answer[39];
  stage_read(client, answer, sizeof answer);
  close(client);
  stage_expect_end(far);
  close(far);
  stage_closed(9, ENDING_FINISHED);
}

Test(worker_capture, a_reset_is_abandonment)
{
  uint64_t ask;
  int client = ask_with(10, 10, &ask);
  stage_reset(client);
  cr_assert_eq(stage_receive(MSG_ABANDON, NULL).ABANDON.ask, ask);
  stage_refuse(ask, REASON_NOT_ALLOWED);
  stage_fence();
  cr_assert_eq(counter_read(stage_counters, COUNTER_LATE_VERDICTS), 1);
}

/* The verdict is there before the end of stream: the worker finds it out by the writable check only. */
static void gone_before(enum reason reason, enum counter counter)
{
  uint64_t ask;
  int client = ask_with(0, 0, &ask);
  int far = -1;
  stage_fence(); /* the client's head is no longer among what the loop has to look at */
  stage_pause();
  if (reason == REASON_NONE)
    far = stage_grant(ask, 9);
  else
    stage_refuse(ask, reason);
  cr_assert_eq(shutdown(client, SHUT_WR), 0);
  stage_continue();
  stage_expect_end(client);
  if (far >= 0) {
    stage_closed(9, ENDING_CLIENT_GONE);
    stage_expect_end(far);
    close(far);
  }
  cr_assert_eq(counter_read(stage_counters, counter), 1);
  cr_assert_eq(counter_read(stage_counters, COUNTER_ANSWERED_200), 0);
  cr_assert_eq(counter_read(stage_counters, COUNTER_ANSWERED_REFUSAL), 0);
  close(client);
}

Test(worker_capture, nothing_is_written_to_a_client_that_is_gone_before_its_200)
{
  gone_before(REASON_NONE, COUNTER_GONE_BEFORE_200);
}

Test(worker_capture, nothing_is_written_to_a_client_that_is_gone_before_its_403)
{
  gone_before(REASON_NOT_ALLOWED, COUNTER_GONE_BEFORE_403);
}

Test(worker_capture, nothing_is_written_to_a_client_that_is_gone_before_its_502)
{
  gone_before(REASON_CONNECTION_REFUSED, COUNTER_GONE_BEFORE_502);
}

Test(worker_capture, a_reset_before_the_200_is_found_too)
{
  uint64_t ask;
  int client = ask_with(0, 0, &ask);
  stage_fence();
  stage_pause();
  int far = stage_grant(ask, 9);
  stage_reset(client);
  stage_continue();
  stage_closed(9, ENDING_CLIENT_GONE);
  stage_expect_end(far);
  close(far);
  cr_assert_eq(counter_read(stage_counters, COUNTER_GONE_BEFORE_200), 1);
}
