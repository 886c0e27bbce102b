#include "policy/egress/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LABEL_MAX 63 /* RFC 1035 section 2.3.4 */
#define NAME_MAX_LENGTH 253
#define PORT_DIGITS_MAX 5
#define PORT_MAX 65535

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
  return is_digit(c) || (c >= 'a' && c <= 'f');
}

static char fold(char c)
{
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* What some resolver would read as a number: decimal or octal digits, or 0x and hex digits (an empty run included). */
static bool label_is_number(const char *label, size_t length)
{
  bool hex = length >= 2 && label[0] == '0' && label[1] == 'x';
  for (size_t i = hex ? 2 : 0; i < length; i++) {
    if (hex ? !is_hex(label[i]) : !is_digit(label[i]))
      return false;
  }
  return length > 0;
}

/* RFC 5890 section 2.3.1, with underscores as service names have them: no hyphen at either end. */
static bool label_is_valid(const char *label, size_t length)
{
  if (length == 0 || length > LABEL_MAX || label[0] == '-' || label[length - 1] == '-')
    return false;
  for (size_t i = 0; i < length; i++) {
    char c = label[i];
    if (!(c >= 'a' && c <= 'z') && !is_digit(c) && c != '-' && c != '_')
      return false;
  }
  return true;
}

/* Checks every label of folded text; *ret_last is where the last one begins. */
static bool labels_are_valid(const char *text, size_t length, size_t *ret_last)
{
  size_t start = 0;
  for (;;) {
    const char *dot = memchr(text + start, '.', length - start);
    size_t end = dot ? (size_t)(dot - text) : length;
    if (!label_is_valid(text + start, end - start))
      return false;
    if (!dot)
      break;
    start = end + 1;
  }
  *ret_last = start;
  return true;
}

static int parse_name(const char *text, size_t length, struct host *ret)
{
  bool trailing_dot = length > 0 && text[length - 1] == '.';
  size_t name_length = trailing_dot ? length - 1 : length;
  if (name_length == 0 || name_length > NAME_MAX_LENGTH)
    return -EINVAL;
  struct host parsed = {.kind = HOST_NAME};
  for (size_t i = 0; i < name_length; i++)
    parsed.text[i] = fold(text[i]);
  size_t last;
  if (!labels_are_valid(parsed.text, name_length, &last))
    return -EINVAL;
  if (label_is_number(parsed.text + last, name_length - last)) {
    if (!trailing_dot && address_parse(parsed.text, &parsed.address) == 0) {
      parsed.kind = HOST_ADDRESS;
    } else {
      parsed.kind = HOST_ODD_ADDRESS;
      /* The dot stays: without it "127.0.0.1." would be read as an address by whoever parses the canonical text. */
      if (trailing_dot)
        parsed.text[name_length] = '.';
    }
  }
  *ret = parsed;
  return 0;
}

/* `text` without brackets. Zones and anything else but hex digits, colons and dots are malformed. */
static int parse_ipv6(const char *text, size_t length, struct host *ret)
{
  char literal[ADDRESS_TEXT_SIZE];
  if (length >= sizeof literal)
    return -EINVAL;
  for (size_t i = 0; i < length; i++) {
    literal[i] = fold(text[i]);
    if (!is_hex(literal[i]) && literal[i] != ':' && literal[i] != '.')
      return -EINVAL;
  }
  literal[length] = '\0';
  struct host parsed = {.kind = HOST_ADDRESS};
  if (address_parse(literal, &parsed.address) < 0 || parsed.address.family != 6)
    return -EINVAL;
  address_format(&parsed.address, parsed.text, sizeof parsed.text);
  *ret = parsed;
  return 0;
}

int host_parse(const char *text, size_t length, struct host *ret)
{
  if (length > 0 && text[0] == '[') {
    if (text[length - 1] != ']' || length < 2)
      return -EINVAL;
    return parse_ipv6(text + 1, length - 2, ret);
  }
  return parse_name(text, length, ret);
}

int host_parse_canonical(const char *text, struct host *ret)
{
  size_t length = strnlen(text, HOST_TEXT_SIZE);
  struct host parsed;
  int result = memchr(text, ':', length) ? parse_ipv6(text, length, &parsed) : parse_name(text, length, &parsed);
  if (result < 0)
    return result;
  if (length >= sizeof parsed.text || memcmp(parsed.text, text, length + 1) != 0)
    return -EINVAL;
  *ret = parsed;
  return 0;
}

const char *host_format(const struct host *host, unsigned port, char *ret, size_t size)
{
  bool brackets = host->kind == HOST_ADDRESS && host->address.family == 6;
  snprintf(ret, size, brackets ? "[%s]:%u" : "%s:%u", host->text, port);
  return ret;
}

int port_parse(const char *text, size_t length, uint16_t *ret)
{
  if (length == 0 || length > PORT_DIGITS_MAX || text[0] == '0')
    return -EINVAL;
  unsigned port = 0;
  for (size_t i = 0; i < length; i++) {
    if (!is_digit(text[i]))
      return -EINVAL;
    port = port * 10 + (unsigned)(text[i] - '0');
  }
  if (port > PORT_MAX)
    return -EINVAL;
  *ret = (uint16_t)port;
  return 0;
}

/* Length of the host part: up to and with "]", or up to the first colon. */
static size_t host_length(const char *text, size_t length)
{
  bool brackets = length > 0 && text[0] == '[';
  const char *end = memchr(text, brackets ? ']' : ':', length);
  if (!end)
    return length;
  return (size_t)(end - text) + (brackets ? 1 : 0);
}

int authority_parse(const char *text, size_t length, unsigned default_port, struct host *ret_host, uint16_t *ret_port)
{
  size_t host_end = length > 0 ? host_length(text, length) : 0;
  uint16_t port;
  if (host_end < length) {
    if (text[host_end] != ':' || port_parse(text + host_end + 1, length - host_end - 1, &port) < 0)
      return -EINVAL;
  } else {
    if (default_port == 0 || default_port > PORT_MAX)
      return -EINVAL;
    port = (uint16_t)default_port;
  }
  struct host host;
  if (host_parse(text, host_end, &host) < 0)
    return -EINVAL;
  *ret_host = host;
  *ret_port = port;
  return 0;
}
