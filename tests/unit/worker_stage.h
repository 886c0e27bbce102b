/* An egress worker without confinement in a process of its own, and around it a parent, clients and upstreams, all the
   test's, on loopback. Whatever is waited for is an event with a time limit; nothing sleeps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/counters.h"
#include "shared/messages.h"
#include "shared/reasons.h"

struct stage_options {
  struct msg_worker_settings settings; /* set by stage_defaults */
  bool small_channel;                  /* the worker's end takes only a few messages */
  bool small_sockets;                  /* buffers of a few kilobytes on all connections */
};

extern pid_t stage_worker;
extern struct counters *stage_counters;

struct stage_options stage_defaults(void);
void stage_start(const struct stage_options *options);

/* Closes the channel and gives the worker's exit code. Fails the test when it was killed. */
int stage_stop(void);

/* Waits for the worker's own end: its exit code. */
int stage_await_end(void);

/* What the worker has logged so far contains the text. */
bool stage_logged(const char *text);

/* Open descriptors of the worker. */
size_t stage_descriptors(void);

bool stage_has_descriptor(int descriptor);

/* The worker's event loop has this descriptor with EPOLLEXCLUSIVE. */
bool stage_watches_exclusively(int descriptor);

void stage_pause(void);
void stage_continue(void);

/* A connected client; reads have a time limit. */
int stage_client(void);
void stage_write(int fd, const void *bytes, size_t length);
void stage_write_text(int fd, const char *text);

/* Reads exactly so many bytes. */
void stage_read(int fd, void *ret, size_t length);

/* Reads to the end of stream. Returns the length; `size` is the most that may come. */
size_t stage_read_all(int fd, char *ret, size_t size);

/* The next read gives end of stream, or a reset. */
void stage_expect_end(int fd);
void stage_expect_reset(int fd);

/* Closes with a reset. */
void stage_reset(int fd);

/* The next message of the worker, which must be of this type. ret_descriptor may be NULL: it is closed. */
union message stage_receive(enum message_type type, int *ret_descriptor);

/* No message is there now. */
bool stage_silent(void);

/* Until the worker has looked at everything that its clients had sent before this call. */
void stage_fence(void);

void stage_send(const void *message, int descriptor);
void stage_refuse(uint64_t ask, enum reason reason);

/* Grants with a new upstream connection; its far end is the result. */
int stage_grant(uint64_t ask, uint64_t session);

/* Client, head, ask, grant, 200. */
void stage_tunnel(uint64_t session, int *ret_client, int *ret_far);

/* The worker reports the end of this session. */
struct msg_session_closed stage_closed(uint64_t session, enum ending ending);

/* Byte of a stream that shows loss, repetition and exchange. */
unsigned char stage_byte(uint64_t seed, uint64_t position);
