/* Sockets connected to nameservers, as the parent hands them over: asked for by ticket, UDP ones a few ahead. A socket
   is given out once, so that every question has a source port of its own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "child/resolver/parent_link.h"
#include "shared/messages.h"

struct socket_supply;

/* The socket that was wanted; `fd` is the taker's, -1: it cannot be had. Called from the loop, never from within
   socket_supply_want. */
typedef void socket_taker(void *arg, int fd);

/* 0 with *ret owned by the caller, or -ENOMEM. */
int socket_supply_new(struct parent_link *link, struct socket_supply **ret);

/* Closes what was not taken; no taker is called. */
void socket_supply_free(struct socket_supply *supply);

/* There are so many nameservers now, and an index means another one than before: what was kept is closed. */
void socket_supply_set_servers(struct socket_supply *supply, unsigned servers);

/* A connected UDP socket from those kept ready, which the caller owns, or -1 when there is none now. */
int socket_supply_take(struct socket_supply *supply, unsigned server);

/* Asks the parent for one. The ticket, or 0 when there is no such nameserver or no memory. */
uint64_t socket_supply_want(struct socket_supply *supply, unsigned server, enum socket_kind kind, socket_taker *taker,
                            void *arg);

/* The taker of this ticket is no more. */
void socket_supply_forget(struct socket_supply *supply, uint64_t ticket);

/* The parent's answer; takes `fd` over, -1: SOCKET_FAILED, or lost. An unknown ticket's descriptor is closed. */
void socket_supply_arrived(struct socket_supply *supply, uint64_t ticket, int fd);
