#include "policy/config/build_listener.h"

#include <stdlib.h>
#include <string.h>

#include "policy/config/nearest.h"
#include "policy/egress/classes.h"

static bool has_scheme(const char *text, const char *scheme)
{
  return strncmp(text, scheme, strlen(scheme)) == 0;
}

/* 0 or -1, reported. */
static int parse_listen(const struct draft *draft, const struct text *listen, const char *file, struct endpoint *ret)
{
  struct host host;
  uint16_t port;
  if (has_scheme(listen->value, "unix:") || has_scheme(listen->value, "fd:")) {
    report_error(draft->report, file, listen->line,
                 "this version does not have Unix sockets and socket activation yet");
    return -1;
  }
  if (authority_parse(listen->value, strlen(listen->value), 0, &host, &port) < 0 || host.kind != HOST_ADDRESS) {
    report_error(
      draft->report, file, listen->line,
      "listen \"%.80s\": write ADDRESS:PORT with an IP address, IPv6 in brackets and quotes (\"[::1]:3128\")",
      listen->value);
    return -1;
  }
  struct address plain = address_unmap(&host.address);
  if (plain.family != host.address.family) {
    report_error(draft->report, file, listen->line, "listen \"%.80s\": write the IPv4 address itself", listen->value);
    return -1;
  }
  *ret = (struct endpoint){.address = host.address, .port = port};
  return 0;
}

static void check_openness(const struct draft *draft, const struct draft_listener *written,
                           const struct endpoint *endpoint, const char *file)
{
  if (address_classify(&endpoint->address) == CLASS_LOOPBACK)
    return;
  if (!written->authenticate_written || !written->open)
    report_error(draft->report, file, written->listen.line,
                 "%s is not loopback, and this version has no authentication: whoever reaches it can use it. Write "
                 "\"authenticate: none\" and \"open: yes\" beside it when that is meant",
                 written->listen.value);
}

static bool is_wildcard(const struct address *address)
{
  return address_classify(address) == CLASS_UNSPECIFIED;
}

/* The second bind would fail: same port, and same address or one of them is the wildcard of the same family. */
static bool collides(const struct endpoint *a, const struct endpoint *b)
{
  return a->port == b->port && a->address.family == b->address.family &&
         (address_equal(&a->address, &b->address) || is_wildcard(&a->address) || is_wildcard(&b->address));
}

static void check_collisions(const struct draft *draft, const struct config_listener *listener, const char *file)
{
  const struct config *config = draft->config;
  for (size_t i = 0; i < config->egress_count; i++) {
    const struct config_listener *other = &config->egress[i];
    if (other != listener && collides(&other->endpoint, &listener->endpoint)) {
      report_error(draft->report, file, listener->line, "listen %s collides with %s in line %u", listener->text,
                   other->text, other->line);
      return;
    }
  }
}

static const char *policy_name(const void *context, size_t index)
{
  const struct config *config = context;
  return index < config->policy_count ? config->policies[index].name : NULL;
}

static const struct policy *find_policy(const struct draft *draft, const struct text *name, const char *file)
{
  if (!name->value)
    return NULL;
  const struct policy *policy = config_policy(draft->config, name->value);
  if (policy)
    return policy;
  const char *near = nearest_word(name->value, policy_name, draft->config);
  report_error(draft->report, file, name->line, "there is no policy \"%.80s\"%s%s%s", name->value,
               near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
  return NULL;
}

static void build_listener(struct draft *draft, struct draft_listener *written, const char *file)
{
  const struct policy *policy = find_policy(draft, &written->policy, file);
  struct endpoint endpoint;
  if (!written->listen.value || parse_listen(draft, &written->listen, file, &endpoint) < 0)
    return;
  check_openness(draft, written, &endpoint, file);
  struct config *config = draft->config;
  struct config_listener *listener = &config->egress[config->egress_count];
  *listener = (struct config_listener){
    .text = written->listen.value, .endpoint = endpoint, .policy = policy, .line = written->listen.line};
  written->listen.value = NULL;
  check_collisions(draft, listener, file);
  config->egress_count++;
}

void build_listeners(struct draft *draft, const char *file)
{
  if (draft->listener_count == 0) {
    if (draft->report->report.errors == 0)
      report_warning(draft->report, file, 0, "nothing listens: there is no \"egress\" listener");
    return;
  }
  draft->config->egress = calloc(draft->listener_count, sizeof *draft->config->egress);
  if (!draft->config->egress) {
    draft->report->out_of_memory = true;
    return;
  }
  for (size_t i = 0; i < draft->listener_count; i++)
    build_listener(draft, &draft->listeners[i], file);
}
