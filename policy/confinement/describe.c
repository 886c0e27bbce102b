/* The tables as people read them. */
#include <seccomp.h>
#include <stdlib.h>

#include "policy/confinement/calls.h"
#include "policy/confinement/confine.h"

static void describe_constraint(const struct constraint *when, FILE *stream)
{
  unsigned long long value = when->value;
  switch (when->check) {
  case CHECK_INT_BETWEEN:
    fprintf(stream, "argument %u from %llu to %llu", when->argument, value, (unsigned long long)when->end - 1);
    break;
  case CHECK_INT_WITHIN:
  case CHECK_LONG_WITHIN:
    fprintf(stream, "argument %u has no bits but %#llx", when->argument, value);
    break;
  default:
    fprintf(stream, "argument %u is %#llx", when->argument, value);
    break;
  }
}

static const char *const answers[] = {
  [CALL_ALLOWED] = "",
  [CALL_ABSENT] = "answered ENOSYS",
  [CALL_CANARY] = "answered with the role's own error",
};

static void describe_call(const struct call *call, FILE *stream)
{
  char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, call->number);
  if (name)
    fprintf(stream, "| %s | ", name);
  else
    fprintf(stream, "| number %d | ", call->number); /* newer than the library */
  free(name);
  fputs(answers[call->treatment], stream);
  for (size_t i = 0; i < CALL_CONSTRAINTS_MAX && call->when[i].check != CHECK_NONE; i++) {
    fputs(i > 0 || call->treatment != CALL_ALLOWED ? ", " : "", stream);
    describe_constraint(&call->when[i], stream);
  }
  fprintf(stream, " | %s |\n", call->reason);
}

void confine_describe(enum role role, FILE *stream)
{
  size_t count;
  const struct call_table *const *tables = calls_of(role, &count);
  fprintf(stream, "### %s\n\n", role_name(role));
  for (size_t t = 0; t < count; t++) {
    fprintf(stream, "%s:\n\n| call | only if | why |\n|---|---|---|\n", tables[t]->purpose);
    for (size_t i = 0; i < tables[t]->count; i++)
      describe_call(&tables[t]->calls[i], stream);
    fputc('\n', stream);
  }
}
