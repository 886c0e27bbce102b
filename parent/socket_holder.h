/* Names the process that holds a listening port, for the message of a start that failed. */
#pragma once

#include <stddef.h>

#include "shared/address.h"

#define SOCKET_HOLDER_SIZE 128

/* Writes " (held by NAME, pid N; stop it or choose another port)" or "" when it cannot be told. */
void socket_holder(const struct endpoint *endpoint, char *ret, size_t size);
