/* A resolver without confinement in a thread, and around it a parent and a nameserver, both the test's: the "sockets
   connected to nameservers" are socket pairs, so that nothing goes over a network. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shared/messages.h"
#include "tests/unit/resolver_packet.h"

struct bench_question {
  int fd; /* the nameserver's end; packets go back through it */
  unsigned server;
  bool tcp;
  unsigned socket_number; /* counts the sockets handed over */
  unsigned id;
  unsigned type;
  char name[HOST_TEXT_SIZE];
};

/* Set by each test: what the nameserver does with a question. */
extern void (*bench_nameserver)(const struct bench_question *question);

/* Set by a test: whether the parent answers SOCKET_FAILED. NULL: never. */
extern bool (*bench_refuses)(unsigned server, enum socket_kind kind);

/* What has happened so far. */
extern unsigned bench_questions;
extern struct bench_question bench_asked[4096];

void bench_start(void);
void bench_stop(void);
/* Ends the resolver and gives the result of resolver_run. */
int bench_end(void);

void bench_settings(unsigned servers, uint32_t timeout_ms);
void bench_hosts(const char *text);
void bench_send(const void *message, int descriptor);
void bench_lookup(uint64_t id, const char *name);

/* Serves until the lookup's answer comes; fails the test when none comes in time. */
struct msg_lookup_answer bench_answer(uint64_t id);

/* Serves until so many questions have come in all. */
void bench_await_questions(unsigned count);

/* Lookup and answer in one. */
struct msg_lookup_answer bench_resolve(const char *name);

void bench_reply(const struct bench_question *question, const struct packet_bytes *packet);

/* Sends, waiting while the socket's queue is full. False when the resolver has closed its end. */
bool bench_reply_all(const struct bench_question *question, const struct packet_bytes *packet);

/* Waits until the resolver has ended of itself. */
void bench_await_end(void);

/* Leaves the resolver room for a few answers only that the parent has not read. */
void bench_squeeze(void);
