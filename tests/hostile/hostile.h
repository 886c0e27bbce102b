/* A worker that an attacker owns. Confined like the real one, it accepts clients, and does to the parent what a client
   of the test tells it to. Test only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/messages.h"

/* Made before confinement: descriptors that an attack can hand over. */
struct hostile_things {
  int pipe;
  int pair;
  int udp;
  int tcp; /* never connected */
};

struct order {
  int client;       /* who gave it: an accepted connection of a listener */
  const char *host; /* first argument, or "" */
  const char *port; /* second argument, or "" */
};

struct attack {
  const char *name;
  void (*run)(const struct order *order);
};

/* The table ends with a NULL name. */
extern const struct attack attacks[];

void attacks_prepare(void);

/* Sends any bytes with any descriptors to the parent; a full channel is waited for. Ends the process when the channel
   is dead. */
void send_raw(const void *bytes, size_t size, const int *descriptors, size_t count);

/* Waits for an answer to an ask. A grant's descriptor is *ret_descriptor, else -1. */
void wait_answer(union message *ret, int *ret_descriptor);
