/* From the 200 to the end: half-open both ways, resets, silence, bulk, back-pressure. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/worker_stage.h"

#define BULK_BYTES (64ULL << 20)
#define PIECE (64 * 1024)

static int client;
static int far;

static void start_with(const struct stage_options *options)
{
  stage_start(options);
  stage_tunnel(3, &client, &far);
}

static void start(void)
{
  struct stage_options options = stage_defaults();
  start_with(&options);
}

static void stop(void)
{
  close(client);
  close(far);
  cr_assert_eq(stage_stop(), 1);
}

TestSuite(worker_tunnel, .timeout = 120);

static void half_close(int first, int second, uint64_t bytes_up, uint64_t bytes_down)
{
  char text[8];
  stage_write_text(first, "bye");
  cr_assert_eq(shutdown(first, SHUT_WR), 0);
  stage_read(second, text, 3);
  stage_expect_end(second);
  for (int i = 0; i < 3; i++) {
    stage_write_text(second, "reply");
    stage_read(first, text, 5);
    cr_assert_eq(memcmp(text, "reply", 5), 0);
  }
  cr_assert_eq(shutdown(second, SHUT_WR), 0);
  stage_expect_end(first);
  struct msg_session_closed closed = stage_closed(3, ENDING_FINISHED);
  cr_assert_eq(closed.bytes_up, bytes_up);
  cr_assert_eq(closed.bytes_down, bytes_down);
  cr_assert_eq(counter_read(stage_counters, COUNTER_BYTES_UP), bytes_up);
  cr_assert_eq(counter_read(stage_counters, COUNTER_BYTES_DOWN), bytes_down);
  cr_assert_eq(counter_read(stage_counters, COUNTER_TUNNELS_OPEN), 0);
  cr_assert_eq(counter_read(stage_counters, COUNTER_SESSIONS_OPEN), 0);
}

Test(worker_tunnel, half_open_client_first)
{
  start();
  half_close(client, far, 3, 15);
  stop();
}

Test(worker_tunnel, half_open_upstream_first)
{
  start();
  half_close(far, client, 15, 3);
  stop();
}

Test(worker_tunnel, a_reset_by_the_client_reaches_the_upstream_as_a_reset)
{
  start();
  stage_reset(client);
  stage_expect_reset(far);
  stage_closed(3, ENDING_CLIENT_RESET);
  stop();
}

Test(worker_tunnel, a_reset_by_the_upstream_reaches_the_client_as_a_reset)
{
  start();
  stage_reset(far);
  stage_expect_reset(client);
  stage_closed(3, ENDING_UPSTREAM_RESET);
  stop();
}

Test(worker_tunnel, a_reset_of_a_side_that_had_ended_is_found_in_silence)
{
  start();
  cr_assert_eq(shutdown(client, SHUT_WR), 0);
  stage_expect_end(far);
  stage_reset(client);
  client = -1;
  stage_closed(3, ENDING_CLIENT_RESET);
  /* After an end of stream no read shows it, but the socket's error does. */
  struct pollfd look = {.fd = far};
  cr_assert_eq(poll(&look, 1, 10000), 1);
  cr_assert(look.revents & POLLERR);
  stop();
}

Test(worker_tunnel, a_reset_is_found_while_the_other_side_does_not_read)
{
  static char flood[PIECE];
  struct stage_options options = stage_defaults();
  options.small_sockets = true;
  start_with(&options);
  struct pollfd writable = {.fd = client, .events = POLLOUT};
  while (poll(&writable, 1, 500) == 1)
    send(client, flood, sizeof flood, MSG_DONTWAIT);
  stage_reset(client);
  client = -1;
  stage_closed(3, ENDING_CLIENT_RESET);
  stop();
}

Test(worker_tunnel, what_an_upstream_said_before_its_reset_reaches_the_client)
{
  start();
  char text[5];
  stage_pause();
  stage_write_text(client, "upload");
  stage_write_text(far, "early");
  stage_reset(far);
  stage_continue();
  stage_read(client, text, sizeof text);
  cr_assert_eq(memcmp(text, "early", sizeof text), 0);
  stage_expect_reset(client);
  stage_closed(3, ENDING_UPSTREAM_RESET);
  stop();
}

Test(worker_tunnel, idle)
{
  struct stage_options options = stage_defaults();
  options.settings.tunnel_idle_ms = 100;
  start_with(&options);
  stage_expect_reset(far);
  stage_expect_reset(client);
  stage_closed(3, ENDING_IDLE);
  stop();
}

Test(worker_tunnel, half_open_idle)
{
  struct stage_options options = stage_defaults();
  options.settings.half_open_idle_ms = 100;
  start_with(&options);
  cr_assert_eq(shutdown(client, SHUT_WR), 0);
  stage_expect_end(far);
  stage_closed(3, ENDING_HALF_OPEN);
  stage_expect_reset(client);
  stop();
}

struct stream { /* one direction as the test sees it */
  int from;
  int to;
  uint64_t seed;
  uint64_t sent;
  uint64_t received;
  bool ended;
};

static void stream_send(struct stream *stream, uint64_t total)
{
  static char piece[PIECE];
  size_t length = total - stream->sent < sizeof piece ? (size_t)(total - stream->sent) : sizeof piece;
  for (size_t i = 0; i < length; i++)
    piece[i] = (char)stage_byte(stream->seed, stream->sent + i);
  ssize_t written = write(stream->from, piece, length);
  cr_assert(written > 0 || errno == EAGAIN, "write: %s", strerror(errno));
  stream->sent += written > 0 ? (uint64_t)written : 0;
  if (stream->sent == total)
    cr_assert_eq(shutdown(stream->from, SHUT_WR), 0);
}

static void stream_receive(struct stream *stream)
{
  static char piece[PIECE];
  ssize_t got = read(stream->to, piece, sizeof piece);
  cr_assert(got >= 0 || errno == EAGAIN, "read: %s", strerror(errno));
  for (ssize_t i = 0; i < got; i++)
    if ((unsigned char)piece[i] != stage_byte(stream->seed, stream->received + (uint64_t)i))
      cr_assert_fail("byte %llu is wrong", (unsigned long long)(stream->received + (uint64_t)i));
  stream->received += got > 0 ? (uint64_t)got : 0;
  stream->ended = got == 0;
}

/* Both directions at once, as fast as they go; each byte is compared. */
static void pour(uint64_t total)
{
  struct stream streams[2] = {{.from = client, .to = far, .seed = 1}, {.from = far, .to = client, .seed = 2}};
  fcntl(client, F_SETFL, O_NONBLOCK);
  fcntl(far, F_SETFL, O_NONBLOCK);
  while (!streams[0].ended || !streams[1].ended) {
    struct pollfd ends[2];
    for (int i = 0; i < 2; i++)
      ends[i] = (struct pollfd){
        .fd = streams[i].from,
        .events = (short)((streams[i].sent < total ? POLLOUT : 0) | (streams[1 - i].ended ? 0 : POLLIN))};
    cr_assert_gt(poll(ends, 2, 10000), 0, "nothing moves: %llu up, %llu down", (unsigned long long)streams[0].received,
                 (unsigned long long)streams[1].received);
    for (int i = 0; i < 2; i++) {
      if (ends[i].revents & POLLOUT && streams[i].sent < total)
        stream_send(&streams[i], total);
      if (ends[i].revents & POLLIN)
        stream_receive(&streams[1 - i]);
    }
  }
  cr_assert_eq(streams[0].received, total);
  cr_assert_eq(streams[1].received, total);
  struct msg_session_closed closed = stage_closed(3, ENDING_FINISHED);
  cr_assert_eq(closed.bytes_up, total);
  cr_assert_eq(closed.bytes_down, total);
}

Test(worker_tunnel, bulk_both_ways_is_spliced_and_whole)
{
  start();
  size_t descriptors = stage_descriptors();
  pour(BULK_BYTES);
  cr_assert_gt(counter_read(stage_counters, COUNTER_SPLICED), BULK_BYTES / 4);
  cr_assert_eq(stage_descriptors(), descriptors - 2);
  stop();
}

Test(worker_tunnel, a_stream_through_small_buffers_is_whole)
{
  struct stage_options options = stage_defaults();
  options.small_sockets = true;
  options.settings.buffered_bytes = 1000;
  start_with(&options);
  pour(1 << 20);
  stop();
}

Test(worker_tunnel, an_exhausted_budget_slows_and_kills_nobody)
{
  struct stage_options options = stage_defaults();
  options.small_sockets = true;
  options.settings.buffered_total_bytes = 1;
  start_with(&options);
  pour(1 << 20);
  stop();
}

/* Writes until nothing is taken any more: nothing for longer than the worker can need. */
static uint64_t fill(int fd, uint64_t seed)
{
  static char piece[PIECE];
  uint64_t sent = 0;
  struct pollfd writable = {.fd = fd, .events = POLLOUT};
  fcntl(fd, F_SETFL, O_NONBLOCK);
  while (poll(&writable, 1, 500) == 1) {
    for (size_t i = 0; i < sizeof piece; i++)
      piece[i] = (char)stage_byte(seed, sent + i);
    ssize_t written = write(fd, piece, sizeof piece);
    sent += written > 0 ? (uint64_t)written : 0;
  }
  return sent;
}

Test(worker_tunnel, a_sink_that_does_not_read_stops_its_source_and_loses_nothing)
{
  struct stage_options options = stage_defaults();
  options.small_sockets = true;
  start_with(&options);
  uint64_t sent = fill(client, 5);
  cr_assert_lt(sent, 256 * 1024); /* one buffer of the worker and small ones of the kernel */
  cr_assert_eq(shutdown(client, SHUT_WR), 0);
  struct stream stream = {.to = far, .seed = 5};
  while (!stream.ended)
    stream_receive(&stream);
  cr_assert_eq(stream.received, sent);
  close(far);
  cr_assert_eq(stage_closed(3, ENDING_FINISHED).bytes_up, sent);
  far = -1;
  stop();
}

Test(worker_tunnel, a_tunnel_that_dies_full_gives_its_pipe_back_empty)
{
  start();
  /* Far does not read: the bulk ends up in a pipe. More such tunnels than there are pipes, one after another. */
  for (uint64_t i = 0; i < RELAY_PIPES + 4; i++) {
    int dead;
    int deaf;
    stage_tunnel(100 + i, &dead, &deaf);
    static char zeroes[PIECE];
    fcntl(dead, F_SETFL, O_NONBLOCK);
    for (int n = 0; n < 64; n++)
      if (write(dead, zeroes, sizeof zeroes) < 0)
        break;
    stage_reset(deaf);
    stage_closed(100 + i, ENDING_UPSTREAM_RESET);
    close(dead);
  }
  pour(8 << 20);
  cr_assert_gt(counter_read(stage_counters, COUNTER_SPLICED), 0);
  stop();
}

Test(worker_tunnel, many_tunnels_leak_nothing)
{
  start();
  size_t before = stage_descriptors();
  for (uint64_t i = 0; i < 60; i++) {
    int one;
    int other;
    char byte;
    stage_tunnel(100 + i, &one, &other);
    stage_write_text(one, "x");
    stage_read(other, &byte, 1);
    if (i % 3 == 0) {
      close(one);
      stage_expect_end(other);
      close(other);
      stage_closed(100 + i, ENDING_FINISHED);
    } else {
      stage_reset(i % 3 == 1 ? one : other);
      stage_closed(100 + i, i % 3 == 1 ? ENDING_CLIENT_RESET : ENDING_UPSTREAM_RESET);
      close(i % 3 == 1 ? other : one);
    }
  }
  cr_assert_eq(stage_descriptors(), before);
  stop();
}

Test(worker_tunnel, drain_ends_idle_heads_and_lets_tunnels_go_on)
{
  start();
  int silent = stage_client();
  stage_fence();
  struct msg_drain drain = {.type = MSG_DRAIN};
  stage_send(&drain, -1);
  stage_expect_end(silent);
  close(silent);
  char byte;
  stage_write_text(client, "x");
  stage_read(far, &byte, 1);
  /* The filter lets nobody shut down or reset what has a listener's number: no session may ever get it. */
  cr_assert(stage_has_descriptor(CHILD_LISTENER_FD_FIRST));
  close(client);
  stage_expect_end(far);
  close(far);
  stage_closed(3, ENDING_FINISHED);
  cr_assert_eq(stage_await_end(), 0);
}
