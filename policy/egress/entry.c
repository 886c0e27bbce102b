#include "policy/egress/entry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/egress/prefix.h"

#define PORT_HTTP 80
#define PORT_HTTPS 443
#define PORT_LAST UINT16_MAX

/* A piece of the entry; not terminated. */
struct span {
  const char *at;
  size_t length;
};

static int problem(struct entry_problem *ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int problem(struct entry_problem *ret, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(ret->text, sizeof ret->text, format, arguments);
  va_end(arguments);
  return -EINVAL;
}

static struct span trim(struct span span)
{
  while (span.length > 0 && (span.at[0] == ' ' || span.at[0] == '\t')) {
    span.at++;
    span.length--;
  }
  while (span.length > 0 && (span.at[span.length - 1] == ' ' || span.at[span.length - 1] == '\t'))
    span.length--;
  return span;
}

/* Cuts off what stands before the separator; the whole when there is none. */
static struct span cut(struct span *rest, char separator)
{
  const char *end = memchr(rest->at, separator, rest->length);
  struct span piece = {rest->at, end ? (size_t)(end - rest->at) : rest->length};
  size_t used = end ? piece.length + 1 : piece.length;
  rest->at += used;
  rest->length -= used;
  return piece;
}

static bool contains(struct span span, const char *text)
{
  return memmem(span.at, span.length, text, strlen(text)) != NULL;
}

#define SPAN(span) (int)(span).length, (span).at

static int parse_port_range(struct span piece, struct port_range *ret, struct entry_problem *ret_problem)
{
  struct span rest = piece;
  struct span first = cut(&rest, '-');
  bool is_range = first.length < piece.length;
  struct port_range range;
  if (port_parse(first.at, first.length, &range.first) < 0 ||
      port_parse(is_range ? rest.at : first.at, is_range ? rest.length : first.length, &range.last) < 0)
    return problem(ret_problem,
                   "\"%.*s\" is no port: a port is 1 to 65535 in plain decimal, several are written 443,8443",
                   SPAN(piece));
  if (range.first > range.last)
    return problem(ret_problem, "the port range \"%.*s\" ends before it begins", SPAN(piece));
  *ret = range;
  return 0;
}

static size_t count_pieces(struct span span)
{
  size_t count = 1;
  for (size_t i = 0; i < span.length; i++)
    count += span.at[i] == ',';
  return count;
}

static int parse_ports(struct span text, struct rule *rule, struct entry_problem *ret_problem)
{
  size_t count = count_pieces(text);
  rule->ports = calloc(count, sizeof *rule->ports);
  if (!rule->ports)
    return -ENOMEM;
  rule->port_count = count;
  for (size_t i = 0; i < count; i++) {
    int result = parse_port_range(cut(&text, ','), &rule->ports[i], ret_problem);
    if (result < 0)
      return result;
  }
  return 0;
}

static int default_ports(enum entry_list list, struct rule *rule)
{
  static const struct port_range web[] = {{PORT_HTTP, PORT_HTTP}, {PORT_HTTPS, PORT_HTTPS}};
  static const struct port_range every[] = {{0, PORT_LAST}};
  bool deny = list == ENTRY_DENY;
  const struct port_range *ports = deny ? every : web;
  rule->port_count = deny ? 1 : sizeof web / sizeof web[0];
  rule->ports = calloc(rule->port_count, sizeof *rule->ports);
  if (!rule->ports)
    return -ENOMEM;
  memcpy(rule->ports, ports, rule->port_count * sizeof *ports);
  return 0;
}

static int parse_address(struct span text, struct address *ret, struct entry_problem *ret_problem)
{
  char literal[ADDRESS_TEXT_SIZE];
  if (text.length > 0 && text.length < sizeof literal && !memchr(text.at, '\0', text.length)) {
    memcpy(literal, text.at, text.length);
    literal[text.length] = '\0';
    if (address_parse(literal, ret) == 0)
      return 0;
  }
  return problem(ret_problem, "\"%.*s\" is no address: write IPv4 in four plain decimals, IPv6 without a zone",
                 SPAN(text));
}

static int parse_prefix_length(struct span text, unsigned most, uint8_t *ret, struct entry_problem *ret_problem)
{
  bool is_zero = text.length == 1 && text.at[0] == '0';
  uint16_t length = 0;
  if ((!is_zero && port_parse(text.at, text.length, &length) < 0) || length > most)
    return problem(ret_problem, "\"/%.*s\" is no prefix length: it is 0 to %u here", SPAN(text), most);
  *ret = (uint8_t)length;
  return 0;
}

static int check_prefix(const struct prefix *prefix, struct entry_problem *ret_problem)
{
  char text[ADDRESS_TEXT_SIZE];
  struct prefix masked = prefix_masked(prefix);
  if (!address_equal(&masked.network, &prefix->network))
    return problem(ret_problem, "the address has bits set behind its prefix length: the network is %s",
                   prefix_format(&masked, text, sizeof text));
  struct address mapped = {.family = 6, .bytes = {[10] = 0xff, 0xff}};
  if (prefix->length < 96 || !address_in_prefix(&prefix->network, &mapped, 96))
    return 0;
  struct prefix plain = {.network = address_unmap(&prefix->network), .length = (uint8_t)(prefix->length - 96)};
  return problem(ret_problem, "an IPv4 address in IPv6 form: write %s, which covers this form too",
                 prefix_format(&plain, text, sizeof text));
}

/* `length` without at: none given. */
static int parse_prefix(struct span address, struct span length, struct prefix *ret, struct entry_problem *ret_problem)
{
  struct prefix prefix = {0};
  int result = parse_address(address, &prefix.network, ret_problem);
  if (result < 0)
    return result;
  prefix.length = address_bits(&prefix.network);
  if (length.at)
    result = parse_prefix_length(length, prefix.length, &prefix.length, ret_problem);
  if (result == 0)
    result = check_prefix(&prefix, ret_problem);
  if (result == 0)
    *ret = prefix;
  return result;
}

/* "10.20.0.0/16", "fd00::/8" or "[fd00::]/8", with or without a length. */
static int parse_network(struct span text, struct prefix *ret, struct entry_problem *ret_problem)
{
  struct span rest = text;
  struct span address = cut(&rest, '/');
  struct span length = {0};
  if (address.length < text.length)
    length = rest;
  if (address.length >= 2 && address.at[0] == '[' && address.at[address.length - 1] == ']')
    address = (struct span){address.at + 1, address.length - 2};
  return parse_prefix(address, length, ret, ret_problem);
}

static int check_resolves_to(const struct prefix *prefix, struct entry_problem *ret_problem)
{
  char text[ADDRESS_TEXT_SIZE];
  prefix_format(prefix, text, sizeof text);
  struct prefix range;
  enum address_class address_class;
  if (address_classify(&prefix->network) == CLASS_METADATA &&
      (!special_range(&prefix->network, &range, &address_class) || prefix_contains(&range, prefix)))
    return problem(ret_problem, "no name may resolve to %s, a cloud metadata address: allow the literal instead", text);
  if (!prefix_opens(prefix, &prefix->network))
    return problem(ret_problem, "%s is wider than the special range that it begins in, so it would open nothing", text);
  if (address_classify(&prefix->network) == CLASS_PUBLIC)
    return problem(ret_problem, "%s is public: names may resolve to public addresses without being told so", text);
  return 0;
}

static int parse_resolves_to(struct span text, struct rule *rule, struct entry_problem *ret_problem)
{
  if (rule->kind != RULE_HOST && rule->kind != RULE_WILDCARD)
    return problem(ret_problem, "only a name resolves to something: drop what follows the address");
  size_t count = count_pieces(text);
  rule->resolves_to = calloc(count, sizeof *rule->resolves_to);
  if (!rule->resolves_to)
    return -ENOMEM;
  rule->resolves_to_count = count;
  for (size_t i = 0; i < count; i++) {
    int result = parse_network(trim(cut(&text, ',')), &rule->resolves_to[i], ret_problem);
    if (result == 0)
      result = check_resolves_to(&rule->resolves_to[i], ret_problem);
    if (result < 0)
      return result;
  }
  return 0;
}

static int name_problem(struct span text, struct entry_problem *ret_problem)
{
  for (size_t i = 0; i < text.length; i++) {
    if ((unsigned char)text.at[i] >= 0x80)
      return problem(ret_problem, "the name has letters outside ASCII: write its A-label form (xn--...)");
  }
  if (memchr(text.at, '"', text.length) || memchr(text.at, '\'', text.length))
    return problem(ret_problem, "no quotes within an entry; a list file needs none at all");
  if (memchr(text.at, '*', text.length))
    return problem(ret_problem, "a wildcard stands for whole leading labels only: \"*.example.net\"");
  if (memchr(text.at, '@', text.length))
    return problem(ret_problem, "an entry has no user name: write the host alone");
  if (memchr(text.at, '%', text.length))
    return problem(ret_problem, "an entry has neither zone nor percent sign");
  return problem(ret_problem,
                 "\"%.*s\" is no host: labels of letters, digits, \"-\" and \"_\" (none at either end is "
                 "\"-\"), 63 characters each and 253 in all; or an address",
                 SPAN(text));
}

/* An exact name or IPv4 address, or below "*." a base. */
static int parse_name(struct span text, bool wildcard, struct rule *rule, struct entry_problem *ret_problem)
{
  struct host host;
  if ((text.length > 0 && text.at[0] == '[') || host_parse(text.at, text.length, &host) < 0)
    return name_problem(text, ret_problem);
  if (host.kind == HOST_ODD_ADDRESS)
    return problem(ret_problem,
                   "\"%.*s\" can never match: it ends in a number, and every spelling of an address but four "
                   "plain decimals is refused",
                   SPAN(text));
  if (host.kind == HOST_ADDRESS) {
    if (wildcard)
      return problem(ret_problem, "a wildcard can never match an address: write a network, as in 10.20.0.0/16");
    rule->kind = RULE_PREFIX;
    rule->prefix = prefix_of_address(&host.address);
    return 0;
  }
  rule->kind = wildcard ? RULE_WILDCARD : RULE_HOST;
  rule->host = strdup(host.text);
  return rule->host ? 0 : -ENOMEM;
}

/* Splits a target that begins with "[": the length may stand inside the brackets or behind them. */
static int split_brackets(struct span target, struct span *ret_address, struct span *ret_length, struct span *ret_rest,
                          struct entry_problem *ret_problem)
{
  const char *end = memchr(target.at, ']', target.length);
  if (!end)
    return problem(ret_problem, "\"[\" without \"]\"");
  struct span inside = {target.at + 1, (size_t)(end - target.at) - 1};
  struct span behind = {end + 1, target.length - inside.length - 2};
  struct span length = inside;
  struct span address = cut(&length, '/');
  if (!memchr(address.at, ':', address.length))
    return problem(ret_problem, "brackets are for IPv6 addresses only");
  if (address.length == inside.length)
    length = (struct span){0};
  if (!length.at && behind.length > 0 && behind.at[0] == '/') {
    behind = (struct span){behind.at + 1, behind.length - 1};
    const char *colon = memchr(behind.at, ':', behind.length);
    length = (struct span){behind.at, colon ? (size_t)(colon - behind.at) : behind.length};
    behind = (struct span){length.at + length.length, behind.length - length.length};
  }
  *ret_address = address;
  *ret_length = length;
  *ret_rest = behind;
  return 0;
}

static int parse_bracketed(struct span target, struct rule *rule, struct span *ret_rest,
                           struct entry_problem *ret_problem)
{
  struct span address = {0};
  struct span length = {0};
  int result = split_brackets(target, &address, &length, ret_rest, ret_problem);
  if (result < 0)
    return result;
  rule->kind = RULE_PREFIX;
  return parse_prefix(address, length, &rule->prefix, ret_problem);
}

/* Host and, in *ret_rest, what follows it: nothing or ":PORTS". */
static int parse_target(struct span target, struct rule *rule, struct span *ret_rest, struct entry_problem *ret_problem)
{
  if (target.length > 0 && target.at[0] == '[')
    return parse_bracketed(target, rule, ret_rest, ret_problem);
  const char *slash = memchr(target.at, '/', target.length);
  size_t host_length = slash ? (size_t)(slash - target.at) : target.length;
  struct span after = {target.at + host_length, target.length - host_length};
  const char *colon = memchr(slash ? after.at : target.at, ':', slash ? after.length : target.length);
  struct span before = {target.at, colon ? (size_t)(colon - target.at) : target.length};
  *ret_rest = (struct span){before.at + before.length, target.length - before.length};
  if (slash) {
    struct host host;
    if (host_parse(target.at, host_length, &host) == 0 && host.kind == HOST_NAME)
      return problem(ret_problem, "an entry names a host and its ports, no path");
    rule->kind = RULE_PREFIX;
    return parse_network(before, &rule->prefix, ret_problem);
  }
  if (colon && memchr(colon + 1, ':', ret_rest->length - 1))
    return problem(ret_problem, "more than one colon: write an IPv6 address in brackets, as in [2001:db8::1]:443");
  if (before.length == 1 && before.at[0] == '*') {
    rule->kind = RULE_ANY;
    return 0;
  }
  bool wildcard = before.length > 2 && memcmp(before.at, "*.", 2) == 0;
  if (wildcard)
    before = (struct span){before.at + 2, before.length - 2};
  return parse_name(before, wildcard, rule, ret_problem);
}

/* A network in which no address could be let through. */
static int check_allow(const struct rule *rule, struct entry_problem *ret_problem)
{
  if (rule->kind == RULE_ANY)
    return problem(ret_problem, "\"*\" exists in deny only: name what may be reached");
  if (rule->kind != RULE_PREFIX || rule->prefix.length == address_bits(&rule->prefix.network))
    return 0;
  struct prefix range;
  enum address_class address_class;
  if (special_range(&rule->prefix.network, &range, &address_class) && address_class == CLASS_METADATA &&
      prefix_contains(&range, &rule->prefix))
    return problem(ret_problem, "cloud metadata addresses are allowed one by one, by their exact literal");
  return 0;
}

static int check_shape(struct span text, struct entry_problem *ret_problem)
{
  if (text.length == 0)
    return problem(ret_problem, "the entry is empty");
  if (text.length >= RULE_TEXT_SIZE)
    return problem(ret_problem, "the entry is longer than %d characters: split it", RULE_TEXT_SIZE - 1);
  if (contains(text, "://"))
    return problem(ret_problem, "an entry is HOST or HOST:PORT, not a URL");
  return 0;
}

static int parse_parts(struct span text, enum entry_list list, struct rule *rule, struct entry_problem *ret_problem)
{
  const char *arrow = memmem(text.at, text.length, "->", 2);
  struct span target = {text.at, arrow ? (size_t)(arrow - text.at) : text.length};
  target = trim(target);
  struct span rest = {0};
  int result = parse_target(target, rule, &rest, ret_problem);
  if (result < 0)
    return result;
  if (rest.length == 0)
    result = default_ports(list, rule);
  else if (rest.at[0] == ':')
    result = parse_ports((struct span){rest.at + 1, rest.length - 1}, rule, ret_problem);
  else
    result = problem(ret_problem, "\"%.*s\" follows the address: only \":PORTS\" may", SPAN(rest));
  if (result == 0 && list == ENTRY_ALLOW)
    result = check_allow(rule, ret_problem);
  if (result < 0 || !arrow)
    return result;
  if (list == ENTRY_DENY)
    return problem(ret_problem, "\"->\" is for allow entries: to deny addresses, name them in an entry of their own");
  struct span networks = {arrow + 2, text.length - (size_t)(arrow + 2 - text.at)};
  return parse_resolves_to(trim(networks), rule, ret_problem);
}

int entry_parse(const char *text, size_t length, enum entry_list list, struct rule *ret,
                struct entry_problem *ret_problem)
{
  struct span trimmed = trim((struct span){text, length});
  int result = check_shape(trimmed, ret_problem);
  if (result < 0)
    return result;
  struct rule rule = {0};
  result = parse_parts(trimmed, list, &rule, ret_problem);
  if (result == 0) {
    rule.text = strndup(trimmed.at, trimmed.length);
    if (!rule.text)
      result = -ENOMEM;
  }
  if (result < 0)
    rule_clear(&rule);
  else
    *ret = rule;
  return result;
}

void rule_clear(struct rule *rule)
{
  free(rule->host);
  free(rule->ports);
  free(rule->resolves_to);
  free(rule->text);
  *rule = (struct rule){0};
}
