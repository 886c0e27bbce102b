/* Which tables make a role's filter. */
#include "policy/confinement/calls.h"

#ifdef SALLYPORT_SANITIZER
#define SANITIZER_TABLE &calls_sanitizer,
#else
#define SANITIZER_TABLE
#endif

#define CHILD_TABLES &calls_child_channel, &calls_child_process, &calls_child_memory, &calls_child_absent

static const struct call_table *const worker[] = {&calls_worker_sockets, CHILD_TABLES, SANITIZER_TABLE &calls_canary};

static const struct call_table *const resolver[] = {&calls_resolver_sockets, CHILD_TABLES,
                                                    SANITIZER_TABLE &calls_canary};

static const struct call_table *const parent[] = {
  &calls_parent_loop,     &calls_parent_network, &calls_parent_files,     &calls_parent_spawn,
  &calls_parent_children, &calls_parent_loader,  &calls_parent_libraries, &calls_parent_confinement,
  &calls_parent_absent,   &calls_canary,
};

#define TABLES(of)                \
  {                               \
    of, sizeof(of) / sizeof *(of) \
  }

static const struct {
  const char *name;
  struct {
    const struct call_table *const *tables;
    size_t count;
  } calls;
} roles[ROLE_COUNT] = {
  [ROLE_PARENT] = {"parent", TABLES(parent)},
  [ROLE_WORKER] = {"egress worker", TABLES(worker)},
  [ROLE_RESOLVER] = {"resolver", TABLES(resolver)},
};

const char *role_name(enum role role)
{
  return roles[role].name;
}

const struct call_table *const *calls_of(enum role role, size_t *ret_count)
{
  *ret_count = roles[role].calls.count;
  return roles[role].calls.tables;
}
