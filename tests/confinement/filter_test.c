/* The filter programs say what the tables say, no more and no less; and what one process may do behind another's
 * filter.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "policy/confinement/calls.h"
#include "policy/confinement/filter.h"
#include "shared/limits.h"
#include "tests/confinement/program.h"

#ifdef __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#else
#define NATIVE AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#endif

#define NUMBERS_MAX 1000
#define ARGUMENTS 6
#define SAMPLES_MAX 64

static uint32_t answer_of(enum treatment treatment, enum role role)
{
  switch (treatment) {
  case CALL_ABSENT:
    return SECCOMP_RET_ERRNO | ENOSYS;
  case CALL_CANARY:
    return SECCOMP_RET_ERRNO | (uint32_t)filter_canary_errno(role);
  default:
    return SECCOMP_RET_ALLOW;
  }
}

/* What the kernel makes of the argument. */
static bool holds(const struct constraint *when, const uint64_t *arguments)
{
  uint64_t whole = arguments[when->argument];
  uint32_t lower = (uint32_t)whole;
  switch (when->check) {
  case CHECK_NONE:
    return true;
  case CHECK_INT_IS:
    return lower == when->value;
  case CHECK_INT_WITHIN:
    return (lower & ~(uint32_t)when->value) == 0;
  case CHECK_INT_BETWEEN:
    return lower >= when->value && lower < when->end;
  case CHECK_LONG_IS:
    return whole == when->value;
  case CHECK_LONG_WITHIN:
    return (whole & ~when->value) == 0;
  }
  return false;
}

static uint32_t expected(enum role role, const struct seccomp_data *call)
{
  size_t count;
  const struct call_table *const *tables = calls_of(role, &count);
  for (size_t t = 0; t < count; t++)
    for (size_t i = 0; i < tables[t]->count; i++) {
      const struct call *row = &tables[t]->calls[i];
      bool fits = row->number == call->nr;
      for (size_t c = 0; fits && c < CALL_CONSTRAINTS_MAX; c++)
        fits = holds(&row->when[c], (const uint64_t *)call->args);
      if (fits)
        return answer_of(row->treatment, role);
    }
  return SECCOMP_RET_KILL_PROCESS;
}

struct samples {
  uint64_t values[SAMPLES_MAX];
  size_t count;
};

static void sample(struct samples *samples, uint64_t value)
{
  if (samples->count < SAMPLES_MAX)
    samples->values[samples->count++] = value;
}

/* Values around every border that the row has for the argument. */
static void sample_constraint(struct samples *samples, const struct constraint *when)
{
  const uint64_t around[] = {when->value,  when->value - 1,      when->value + 1, when->value * 2,
                             when->end,    when->end - 1,        when->end + 1,   when->end / 2,
                             ~when->value, when->value | 0x8000, when->value & 1, when->value ^ 0x40};
  for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
    sample(samples, around[i]);
    sample(samples, around[i] | UINT64_C(0x100000000));
  }
}

/* Any argument is one of the samples, the first three independently of each other. */
typedef void judge(const struct seccomp_data *call, const void *context);

static void each_call(int number, const struct samples *samples, judge *verdict, const void *context)
{
  struct seccomp_data call = {.nr = number, .arch = NATIVE};
  static const unsigned varied[][3] = {{0, 1, 2}, {0, 2, 3}, {2, 3, 5}};
  for (size_t v = 0; v < sizeof varied / sizeof *varied; v++)
    for (size_t a = 0; a < samples[varied[v][0]].count; a++)
      for (size_t b = 0; b < samples[varied[v][1]].count; b++)
        for (size_t c = 0; c < samples[varied[v][2]].count; c++) {
          for (unsigned i = 0; i < ARGUMENTS; i++)
            call.args[i] = samples[i].values[0];
          call.args[varied[v][0]] = samples[varied[v][0]].values[a];
          call.args[varied[v][1]] = samples[varied[v][1]].values[b];
          call.args[varied[v][2]] = samples[varied[v][2]].values[c];
          verdict(&call, context);
        }
}

/* The values of a row's own constraints come first, so that all of them can hold at once. */
static void each_row(enum role role, judge *verdict, const void *context)
{
  size_t count;
  const struct call_table *const *tables = calls_of(role, &count);
  for (size_t t = 0; t < count; t++)
    for (size_t i = 0; i < tables[t]->count; i++) {
      struct samples samples[ARGUMENTS] = {0};
      const struct call *row = &tables[t]->calls[i];
      for (size_t c = 0; c < CALL_CONSTRAINTS_MAX; c++)
        if (row->when[c].check != CHECK_NONE)
          sample_constraint(&samples[row->when[c].argument], &row->when[c]);
      for (size_t a = 0; a < ARGUMENTS; a++)
        sample(&samples[a], 0);
      each_call(row->number, samples, verdict, context);
    }
}

struct pair {
  enum role role;
  const struct program *program;
  const struct program *parent;
};

static void same_as_table(const struct seccomp_data *call, const void *context)
{
  const struct pair *pair = context;
  uint32_t wanted = expected(pair->role, call), got = program_run(pair->program, call);
  if (wanted != got)
    cr_expect(wanted == got, "%s: call %d(%#llx, %#llx, %#llx, %#llx): the table says %#x, the filter %#x",
              role_name(pair->role), call->nr, call->args[0], call->args[1], call->args[2], call->args[3], wanted, got);
}

static struct program programs[ROLE_COUNT];

static void export_all(void)
{
  for (unsigned role = 0; role < ROLE_COUNT; role++)
    cr_assert(program_export(role, &programs[role]) == 0);
}

TestSuite(filter, .init = export_all);

Test(filter, program_says_what_the_table_says)
{
  for (unsigned role = 0; role < ROLE_COUNT; role++) {
    struct pair pair = {role, &programs[role], NULL};
    each_row(role, same_as_table, &pair);
    for (int number = 0; number < NUMBERS_MAX; number++)
      same_as_table(&(struct seccomp_data){.nr = number, .arch = NATIVE}, &pair);
  }
}

Test(filter, other_architectures_die)
{
  for (unsigned role = 0; role < ROLE_COUNT; role++)
    for (int number = 0; number < NUMBERS_MAX; number++) {
      const struct seccomp_data foreign = {.nr = number, .arch = FOREIGN};
      const struct seccomp_data x32 = {.nr = number | 0x40000000, .arch = NATIVE};
      cr_expect(program_run(&programs[role], &foreign) == SECCOMP_RET_KILL_PROCESS, "%d", number);
      cr_expect(program_run(&programs[role], &x32) == SECCOMP_RET_KILL_PROCESS, "%d", number);
    }
}

/* Filters add up: the parent's stays in force in its children. */
static void parent_lets_it_through(const struct seccomp_data *call, const void *context)
{
  const struct pair *pair = context;
  uint32_t child = program_run(pair->program, call), parent = program_run(pair->parent, call);
  bool fine = child == SECCOMP_RET_KILL_PROCESS || parent == SECCOMP_RET_ALLOW ||
              (child != SECCOMP_RET_ALLOW && parent != SECCOMP_RET_KILL_PROCESS);
  if (!fine)
    cr_expect(fine, "%s: call %d(%#llx, %#llx, %#llx, %#llx) dies by the parent's filter", role_name(pair->role),
              call->nr, call->args[0], call->args[1], call->args[2], call->args[3]);
}

Test(filter, parent_is_a_superset_of_its_children)
{
  for (unsigned role = 0; role < ROLE_COUNT; role++) {
    struct pair pair = {role, &programs[role], &programs[ROLE_PARENT]};
    if (role != ROLE_PARENT)
      each_row(role, parent_lets_it_through, &pair);
  }
}

/* Two rows that say different things of one call would make the order of rows matter. */
Test(filter, rows_do_not_contradict_each_other)
{
  for (unsigned role = 0; role < ROLE_COUNT; role++) {
    size_t count;
    const struct call_table *const *tables = calls_of(role, &count);
    for (size_t t = 0; t < count; t++)
      for (size_t i = 0; i < tables[t]->count; i++) {
        const struct call *row = &tables[t]->calls[i];
        cr_expect(row->reason && strlen(row->reason) > 0, "call %d has no reason", row->number);
        for (size_t u = 0; u < count; u++)
          for (size_t j = 0; j < tables[u]->count; j++) {
            const struct call *other = &tables[u]->calls[j];
            bool unconditional = row->when[0].check == CHECK_NONE && other != row && other->number == row->number;
            cr_expect(!unconditional || other->treatment == row->treatment, "%s: call %d has two treatments",
                      role_name(role), row->number);
          }
      }
  }
}

Test(filter, listeners_and_sessions_are_told_apart)
{
  for (uint64_t number = 0; number < 2 * (uint64_t)CHILD_DESCRIPTORS_MAX; number += number < 4096 ? 1 : 997) {
    const uint64_t upper[] = {0, UINT64_C(1) << 32, UINT64_MAX << 32};
    for (size_t i = 0; i < sizeof upper / sizeof *upper; i++) {
      struct seccomp_data call = {.nr = SYS_shutdown, .arch = NATIVE, .args = {upper[i] | number, 1}};
      bool session = number >= CHILD_LISTENER_FD_END && number < CHILD_DESCRIPTORS_MAX;
      cr_expect(program_run(&programs[ROLE_WORKER], &call) == (session ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS),
                "shutdown(%#llx)", call.args[0]);
      call = (struct seccomp_data){.nr = SYS_accept4, .arch = NATIVE, .args = {upper[i] | number, 0, 0, 02004000}};
      bool listener = number >= CHILD_LISTENER_FD_FIRST && number < CHILD_LISTENER_FD_END;
      cr_expect(program_run(&programs[ROLE_WORKER], &call) == (listener ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS),
                "accept4(%#llx)", call.args[0]);
    }
  }
}

Test(filter, description_has_every_row_and_its_reason)
{
  for (unsigned role = 0; role < ROLE_COUNT; role++) {
    char *text = NULL;
    size_t size = 0, count;
    FILE *stream = open_memstream(&text, &size);
    confine_describe(role, stream);
    cr_assert(fclose(stream) == 0);
    const struct call_table *const *tables = calls_of(role, &count);
    for (size_t t = 0; t < count; t++)
      for (size_t i = 0; i < tables[t]->count; i++)
        cr_expect(strstr(text, tables[t]->calls[i].reason), "%s", tables[t]->calls[i].reason);
    free(text);
  }
}
