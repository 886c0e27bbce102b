#include "policy/confinement/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/confinement/calls.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "the tables were made for x86_64 and aarch64 only; calls of any other architecture end the process"
#endif

#ifdef SALLYPORT_FILTER_LOG
#define DEFAULT_ACTION SCMP_ACT_LOG
#else
#define DEFAULT_ACTION SCMP_ACT_KILL_PROCESS
#endif

/* Balanced tree: the calls of a relay are as cheap as the first in the table. */
#define OPTIMISE_BINARY_TREE 2

/* The largest that the kernel hands through is 4095; its own end at 133, those of its inside at 530. */
#define CANARY_ERRNO_FIRST 4000
#define LOWER_HALF UINT64_C(0xffffffff)

#define cleanup_filter __attribute__((cleanup(filter_release)))

static void filter_release(scmp_filter_ctx *filter)
{
  if (*filter)
    seccomp_release(*filter);
}

int filter_canary_errno(enum role role)
{
  return CANARY_ERRNO_FIRST + (int)role;
}

static uint32_t action_of(enum treatment treatment, enum role role)
{
  switch (treatment) {
  case CALL_ABSENT:
    return SCMP_ACT_ERRNO(ENOSYS);
  case CALL_CANARY:
    return SCMP_ACT_ERRNO((uint32_t)filter_canary_errno(role));
  default:
    return SCMP_ACT_ALLOW;
  }
}

/* (argument & mask) == value */
static struct scmp_arg_cmp masked(const struct constraint *when, uint64_t mask, uint64_t value)
{
  return (struct scmp_arg_cmp){.arg = when->argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}

static struct scmp_arg_cmp compare(const struct constraint *when)
{
  switch (when->check) {
  case CHECK_INT_IS:
    return masked(when, LOWER_HALF, when->value);
  case CHECK_INT_WITHIN:
    return masked(when, LOWER_HALF & ~when->value, 0);
  case CHECK_LONG_WITHIN:
    return masked(when, ~when->value, 0);
  default:
    return (struct scmp_arg_cmp){.arg = when->argument, .op = SCMP_CMP_EQ, .datum_a = when->value};
  }
}

static int add_rule(scmp_filter_ctx filter, uint32_t action, const struct call *call,
                    const struct scmp_arg_cmp *compares, unsigned count)
{
  return seccomp_rule_add_exact_array(filter, action, call->number, count, compares);
}

/* One rule for each aligned block of numbers that makes the range. */
static int add_range(scmp_filter_ctx filter, uint32_t action, const struct call *call, struct scmp_arg_cmp *compares,
                     unsigned count, unsigned ranged)
{
  const struct constraint *range = &call->when[ranged];
  for (uint64_t first = range->value; first < range->end;) {
    uint64_t size = first & -first;
    while (first + size > range->end)
      size /= 2;
    compares[ranged] = masked(range, LOWER_HALF & ~(size - 1), first);
    int failed = add_rule(filter, action, call, compares, count);
    if (failed < 0)
      return failed;
    first += size;
  }
  return 0;
}

static int add_call(scmp_filter_ctx filter, enum role role, const struct call *call)
{
  struct scmp_arg_cmp compares[CALL_CONSTRAINTS_MAX];
  unsigned count = 0;
  int ranged = -1;
  for (; count < CALL_CONSTRAINTS_MAX && call->when[count].check != CHECK_NONE; count++) {
    if (call->when[count].check == CHECK_INT_BETWEEN)
      ranged = (int)count;
    else
      compares[count] = compare(&call->when[count]);
  }
  uint32_t action = action_of(call->treatment, role);
  if (ranged >= 0)
    return add_range(filter, action, call, compares, count, (unsigned)ranged);
  return add_rule(filter, action, call, compares, count);
}

static int add_tables(scmp_filter_ctx filter, enum role role)
{
  size_t count;
  const struct call_table *const *tables = calls_of(role, &count);
  for (size_t t = 0; t < count; t++)
    for (size_t i = 0; i < tables[t]->count; i++) {
      int failed = add_call(filter, role, &tables[t]->calls[i]);
      if (failed < 0)
        return failed;
    }
  return 0;
}

static int build(enum role role, scmp_filter_ctx *ret)
{
  cleanup_filter scmp_filter_ctx filter = seccomp_init(DEFAULT_ACTION);
  if (!filter)
    return -ENOMEM;
  /* Calls by another architecture's numbers (i386, x32) are never diagnosed, they die in every build. */
  int failed = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (failed == 0)
    failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, OPTIMISE_BINARY_TREE);
  if (failed == 0)
    failed = add_tables(filter, role);
  if (failed < 0)
    return failed;
  *ret = filter;
  filter = NULL;
  return 0;
}

int filter_load(enum role role, bool all_threads)
{
  cleanup_filter scmp_filter_ctx filter = NULL;
  int failed = build(role, &filter);
  if (failed == 0 && all_threads)
    failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
  return failed < 0 ? failed : seccomp_load(filter);
}

int filter_verify(enum role role)
{
  if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
    return -EPERM;
  errno = 0;
  return syscall(SYS_acct, NULL) == -1 && errno == filter_canary_errno(role) ? 0 : -EPERM;
}

int confine_export_filter(enum role role, int fd)
{
  cleanup_filter scmp_filter_ctx filter = NULL;
  int failed = build(role, &filter);
  return failed < 0 ? failed : seccomp_export_bpf(filter, fd);
}
