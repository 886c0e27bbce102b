/* c-ares' sockets: its hooks, and readiness back to it. What c-ares knows is a handle, good for nothing but these
   hooks; behind it is a connected descriptor from the parent, or one that is still to come. c-ares itself thus makes no
   system call on a socket, and the process needs none that could make or connect one. Trust: passes hostile bytes on
   unread. */
#pragma once

#include <ares.h>
#include <event2/event.h>

#include "child/resolver/socket_supply.h"

struct query_sockets; /* of one c-ares channel */

/* A handle has become readable or writable (ARES_SOCKET_BAD: not it): ares_process_fd is due. */
typedef void query_sockets_ready(void *arg, ares_socket_t readable, ares_socket_t writable);

/* 0 with *ret owned by the caller, or -ENOMEM. */
int query_sockets_new(struct event_base *base, struct socket_supply *supply, query_sockets_ready *ready, void *arg,
                      struct query_sockets **ret);

/* After ares_destroy of the channel, which closes the handles. */
void query_sockets_free(struct query_sockets *sockets);

/* Makes the channel use them. */
void query_sockets_install(struct query_sockets *sockets, ares_channel channel);

/* The channel's ARES_OPT_SOCK_STATE_CB, with `arg` a struct query_sockets. */
void query_sockets_state(void *arg, ares_socket_t handle, int readable, int writable);

/* Gives the channel `servers` made-up addresses, one for each index that the parent knows; between questions only.
   An ARES_ status. */
int query_sockets_set_servers(ares_channel channel, unsigned servers);
