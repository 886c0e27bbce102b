#include "parent/check_verdict.h"

#include <string.h>

#include "parent/check_addresses.h"
#include "policy/egress/entry.h"
#include "shared/text.h"

struct judged {
  struct verdict host;
  struct address addresses[LOOKUP_ADDRESSES_MAX];
  struct verdict verdicts[LOOKUP_ADDRESSES_MAX];
  size_t count;
  size_t survivors;
};

static void judge(const struct check_question *question, struct judged *ret)
{
  *ret = (struct judged){.host = decide_host(question->policy, &question->host, question->port, question->own)};
  if (ret->host.reason != REASON_NONE || question->host.kind != HOST_NAME)
    return;
  ret->count = check_hosts_file(question->hosts_file, question->host.text, ret->addresses, LOOKUP_ADDRESSES_MAX);
  for (size_t i = 0; i < ret->count; i++) {
    ret->verdicts[i] =
      decide_address(question->policy, ret->host.rule, &ret->addresses[i], question->port, question->own);
    ret->survivors += ret->verdicts[i].reason == REASON_NONE;
  }
}

static bool is_allowed(const struct judged *judged)
{
  return judged->host.reason == REASON_NONE && (judged->count == 0 || judged->survivors > 0);
}

static const char *describe(enum reason reason)
{
  switch (reason) {
  case REASON_NONE:
    return "may be dialled";
  case REASON_NOT_ALLOWED:
    return "no rule allows it";
  case REASON_DENIED:
    return "a rule denies it";
  case REASON_ODD_ADDRESS:
    return "it looks like an address, and is none in four plain decimals: never looked up";
  case REASON_BLOCKED_ADDRESS:
    return "its address is in a special range that the rule does not open";
  case REASON_OWN_LISTENER:
    return "it is a listener of Sallyport's own: never a destination";
  default:
    return "refused";
  }
}

static void print_rule(const struct verdict *verdict, FILE *stream)
{
  if (!verdict->rule)
    return;
  char text[RULE_TEXT_SIZE], file[1024];
  text_printable(verdict->rule->text, strlen(verdict->rule->text), text, sizeof text);
  text_printable(verdict->rule->file, strlen(verdict->rule->file), file, sizeof file);
  fprintf(stream, "  rule     %s:%u: %s \"%s\"\n", file, verdict->rule->line,
          verdict->reason == REASON_DENIED ? "deny" : "allow", text);
}

static void print_address(const struct address *address, const struct verdict *verdict, const char *origin,
                          FILE *stream)
{
  char text[ADDRESS_TEXT_SIZE];
  const char *fate = describe(verdict->reason);
  if (verdict->reason == REASON_BLOCKED_ADDRESS && verdict->address_class == CLASS_METADATA)
    fate = "reached only by a rule that is exactly this literal, and by no name";
  fprintf(stream, "  address  %s%s: %s; %s\n", address_format(address, text, sizeof text), origin,
          address_class_name(address_classify(address)), fate);
}

static void print_addresses(const struct check_question *question, const struct judged *judged, FILE *stream)
{
  if (question->host.kind == HOST_ADDRESS) {
    print_address(&question->host.address, &judged->host, "", stream);
    return;
  }
  for (size_t i = 0; i < judged->count; i++) {
    print_address(&judged->addresses[i], &judged->verdicts[i], " (hosts file)", stream);
    if (judged->verdicts[i].reason == REASON_DENIED)
      print_rule(&judged->verdicts[i], stream);
  }
  if (judged->host.reason == REASON_NONE && judged->count == 0)
    fputs("  address  none in the hosts file; each one that DNS gives is judged before it is dialled\n", stream);
}

/* An allow entry for a name whose addresses were refused by class; empty where none may exist. */
static void suggest_networks(const struct check_question *question, const struct judged *judged, char *ret, size_t size)
{
  char host[HOST_TEXT_SIZE + sizeof ":65535"];
  ret[0] = '\0';
  for (size_t i = 0; i < judged->count; i++) {
    const struct verdict *verdict = &judged->verdicts[i];
    if (verdict->reason != REASON_BLOCKED_ADDRESS || verdict->address_class == CLASS_METADATA)
      continue;
    char text[ADDRESS_TEXT_SIZE];
    struct address plain = address_unmap(&judged->addresses[i]);
    snprintf(ret, size, "%s -> %s", host_format(&question->host, question->port, host, sizeof host),
             address_format(&plain, text, sizeof text));
    return;
  }
}

/* Only what the configuration would accept is shown. */
static bool is_entry(const char *text)
{
  struct rule rule;
  struct entry_problem problem;
  if (entry_parse(text, strlen(text), ENTRY_ALLOW, &rule, &problem) < 0)
    return false;
  rule_clear(&rule);
  return true;
}

static void print_permit(const struct check_question *question, const struct judged *judged, FILE *stream)
{
  char entry[RULE_TEXT_SIZE] = "";
  enum reason reason = judged->host.reason;
  if (reason == REASON_NONE)
    suggest_networks(question, judged, entry, sizeof entry);
  else if (reason == REASON_NOT_ALLOWED || reason == REASON_BLOCKED_ADDRESS)
    decide_suggest(&question->host, question->port, entry, sizeof entry);
  /* Of two rules for one name the first decides, so a second one beside it would change nothing. */
  bool instead = reason == REASON_NONE && judged->host.rule->kind == RULE_HOST;
  if (is_entry(entry))
    fprintf(stream, "  permit   allow entry \"%s\"%s\n", entry, instead ? " in place of that rule" : "");
  else if (reason == REASON_DENIED)
    fputs("  permit   no allow entry: deny always wins, so the rule must go or be narrowed\n", stream);
  else
    fputs("  permit   no entry is suggested\n", stream);
}

bool check_verdict(const struct check_question *question, FILE *stream)
{
  struct judged judged;
  judge(question, &judged);
  bool allowed = is_allowed(&judged);
  char host[HOST_TEXT_SIZE + sizeof "[]:65535"];
  host_format(&question->host, question->port, host, sizeof host);
  if (allowed)
    fprintf(stream, "allow %s\n", host);
  else
    fprintf(stream, "deny %s: %s\n", host,
            judged.host.reason == REASON_NONE ? "none of its addresses may be dialled" : describe(judged.host.reason));
  fprintf(stream, "  policy   %s (%s)\n", question->policy->name, question->policy_chosen);
  print_rule(&judged.host, stream);
  print_addresses(question, &judged, stream);
  if (!allowed)
    print_permit(question, &judged, stream);
  return allowed;
}
