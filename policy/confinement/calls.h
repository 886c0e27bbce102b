/* The rows of which a role's system call filter is made. Data only; filter.c turns them into a program. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/confinement/confine.h"

/* Widest row: descriptor, level and name of a socket option. */
#define CALL_CONSTRAINTS_MAX 3

/* The kernel takes an `int` argument from the lower half of the register and ignores the upper half, in which the ABI
   lets a compiler leave anything: INT checks compare exactly the lower 32 bits. `long` arguments are compared whole. A
   "greater than 63" on the whole register would let 0x100000010 through, which the kernel takes for 16: ranges are
   therefore written as blocks of masked bits, never as an order. */
enum check {
  CHECK_NONE,
  CHECK_INT_IS,      /* == value */
  CHECK_INT_WITHIN,  /* no bits but those of value */
  CHECK_INT_BETWEEN, /* value <= argument < end, value > 0 */
  CHECK_LONG_IS,
  CHECK_LONG_WITHIN,
};

struct constraint {
  enum check check;
  unsigned argument; /* from 0 */
  uint64_t value;
  uint64_t end;
};

enum treatment {
  CALL_ALLOWED,
  CALL_ABSENT, /* ENOSYS: libraries try it, and do without it where it fails */
  CALL_CANARY, /* an error number of the role's own, by which the process knows that its filter is in force */
};

struct call {
  int number;
  enum treatment treatment;
  struct constraint when[CALL_CONSTRAINTS_MAX]; /* all must hold; several rows of one call: one of them must */
  const char *reason;
};

#define CALL(name, why)                                            \
  {                                                                \
    .number = SYS_##name, .treatment = CALL_ALLOWED, .reason = why \
  }
#define CALL_IF(name, why, ...)                                                           \
  {                                                                                       \
    .number = SYS_##name, .treatment = CALL_ALLOWED, .when = {__VA_ARGS__}, .reason = why \
  }
#define CALL_NONE(name, why)                                      \
  {                                                               \
    .number = SYS_##name, .treatment = CALL_ABSENT, .reason = why \
  }
#define CALL_NONE_IF(name, why, ...)                                                     \
  {                                                                                      \
    .number = SYS_##name, .treatment = CALL_ABSENT, .when = {__VA_ARGS__}, .reason = why \
  }
#define INT_IS(number, is)                                             \
  {                                                                    \
    .check = CHECK_INT_IS, .argument = number, .value = (uint32_t)(is) \
  }
#define INT_WITHIN(number, bits)                                             \
  {                                                                          \
    .check = CHECK_INT_WITHIN, .argument = number, .value = (uint32_t)(bits) \
  }
#define INT_BETWEEN(number, first, past)                                                                \
  {                                                                                                     \
    .check = CHECK_INT_BETWEEN, .argument = number, .value = (uint32_t)(first), .end = (uint32_t)(past) \
  }
#define LONG_IS(number, is)                                             \
  {                                                                     \
    .check = CHECK_LONG_IS, .argument = number, .value = (uint64_t)(is) \
  }
#define LONG_WITHIN(number, bits)                                             \
  {                                                                           \
    .check = CHECK_LONG_WITHIN, .argument = number, .value = (uint64_t)(bits) \
  }

/* Descriptors by their number (shared/limits.h): each number below CHILD_LISTENER_FD_END is occupied from the start. */
#define LISTENER_FD(number) INT_BETWEEN(number, CHILD_LISTENER_FD_FIRST, CHILD_LISTENER_FD_END)
#define SESSION_FD(number) INT_BETWEEN(number, CHILD_LISTENER_FD_END, CHILD_DESCRIPTORS_MAX)

struct call_table {
  const char *purpose;
  const struct call *calls;
  size_t count;
};

#define CALL_TABLE(why, rows)                                             \
  {                                                                       \
    .purpose = why, .calls = rows, .count = sizeof(rows) / sizeof *(rows) \
  }

/* The tables of a role; *ret_count of them. */
const struct call_table *const *calls_of(enum role role, size_t *ret_count);

/* Children of every role. */
extern const struct call_table calls_child_memory;
extern const struct call_table calls_child_process;
extern const struct call_table calls_child_channel;
extern const struct call_table calls_child_absent;
extern const struct call_table calls_canary;
#ifdef SALLYPORT_SANITIZER
extern const struct call_table calls_sanitizer;
#endif

extern const struct call_table calls_worker_sockets;
extern const struct call_table calls_resolver_sockets;

extern const struct call_table calls_parent_loop;
extern const struct call_table calls_parent_network;
extern const struct call_table calls_parent_files;
extern const struct call_table calls_parent_spawn;
extern const struct call_table calls_parent_children;
extern const struct call_table calls_parent_loader;
extern const struct call_table calls_parent_libraries;
extern const struct call_table calls_parent_confinement;
extern const struct call_table calls_parent_absent;
