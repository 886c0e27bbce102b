#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "parent/denial.h"

static char *printed(const char *line, enum denial_format format, bool *ret_one)
{
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  *ret_one = denial_print(line, strlen(line), format, stream);
  fclose(stream);
  return text;
}

#define REFUSAL(reason, more)                                                                                    \
  "{\"time\":\"T\",\"event\":\"refusal\",\"client\":\"127.0.0.1:5\",\"host\":\"evil.example.org\",\"port\":443," \
  "\"policy\":\"agents\",\"reason\":\"" reason "\"" more "}\n"

Test(denial, a_miss_shows_the_entry_that_would_permit_it)
{
  bool one;
  char *text = printed(REFUSAL("blocked-by-allowlist", ",\"rule\":null"), DENIAL_TEXT, &one);
  cr_expect(one);
  cr_expect_str_eq(text,
                   "T  127.0.0.1:5  evil.example.org:443  no entry of policy agents allows it; would be permitted "
                   "by: evil.example.org:443\n");
  free(text);
}

Test(denial, a_deny_shows_its_rule_and_no_entry)
{
  bool one;
  char *text = printed(REFUSAL("blocked-by-allowlist", ",\"rule\":\"/etc/x.yaml:7\""), DENIAL_TEXT, &one);
  cr_expect_not_null(strstr(text, "denied by the rule at /etc/x.yaml:7 of policy agents"));
  cr_expect_null(strstr(text, "permitted"));
  free(text);
}

Test(denial, other_reasons_name_themselves)
{
  bool one;
  char *text =
    printed(REFUSAL("blocked-address", ",\"address_class\":\"loopback\",\"rule\":\"x:1\""), DENIAL_TEXT, &one);
  cr_expect_not_null(strstr(text, "its address is loopback"));
  free(text);
  text = printed(REFUSAL("dns-error", ""), DENIAL_TEXT, &one);
  cr_expect_not_null(strstr(text, "dns-error"));
  free(text);
}

Test(denial, what_is_no_refusal_is_passed_over)
{
  static const char *const lines[] = {"{\"event\":\"grant\",\"host\":\"a\"}\n",
                                      "{\"event\":\"end\"}\n",
                                      "[]\n",
                                      "\n",
                                      "{\"event\":\"refusal\"",
                                      "{\"event\":7}\n",
                                      "\"refusal\"\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    bool one;
    char *text = printed(lines[i], DENIAL_TEXT, &one);
    cr_expect_not(one, "%s", lines[i]);
    cr_expect_eq(*text, '\0');
    free(text);
  }
}

Test(denial, hostile_bytes_of_the_log_do_not_reach_the_terminal)
{
  bool one;
  char *text = printed(REFUSAL("\\u001b[2J", ",\"rule\":\"\\n\\u0007\""), DENIAL_TEXT, &one);
  for (const char *c = text; *c; c++)
    cr_expect((*c >= 0x20 && *c < 0x7f) || *c == '\n');
  cr_expect_eq(strchr(text, '\n'), text + strlen(text) - 1);
  free(text);
}

Test(denial, json_is_whole_and_has_the_entry)
{
  bool one;
  char *text = printed(REFUSAL("blocked-by-allowlist", ",\"rule\":null"), DENIAL_JSON, &one);
  json_t *object = json_loads(text, 0, NULL);
  cr_expect_str_eq(json_string_value(json_object_get(object, "permitted_by")), "evil.example.org:443");
  cr_expect_str_eq(json_string_value(json_object_get(object, "client")), "127.0.0.1:5");
  json_decref(object);
  free(text);
}
