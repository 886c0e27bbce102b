#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/config/utf8.h"
#include "tests/unit/config_folder.h"

#define CONFIG(list) \
  "policies:\n  - name: p\n    allow:\n      - list: " list "\negress: [ { listen: 127.0.0.1:1, policy: p } ]\n"

static void expect(struct config_folder *folder, int result, const char *said)
{
  cr_expect_eq(config_folder_load(folder, "c.yaml"), result, "%s", folder->printed);
  cr_expect_not_null(strstr(folder->printed, said), "wanted: %s\ngot: %s", said, folder->printed);
}

Test(config_files, a_file_that_others_can_write_is_refused)
{
  struct config_folder folder;
  config_folder_make(&folder);
  static const struct {
    mode_t mode;
    int result;
  } modes[] = {{0600, 0}, {0444, 0}, {0755, 0}, {0664, -EINVAL}, {0646, -EINVAL}, {0666, -EINVAL}};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    const char *said = modes[i].result ? "others than its owner can write it" : "";
    config_folder_text(&folder, "c.yaml", CONFIG("a.list"));
    config_folder_write(&folder, "a.list", "a.test\n", 7, modes[i].mode);
    expect(&folder, modes[i].result, said);
    config_folder_text(&folder, "a.list", "a.test\n");
    config_folder_write(&folder, "c.yaml", CONFIG("a.list"), strlen(CONFIG("a.list")), modes[i].mode);
    expect(&folder, modes[i].result, said);
  }
  config_folder_remove(&folder);
}

Test(config_files, a_file_of_somebody_else_is_refused)
{
  if (geteuid() != 0)
    return; /* only root can give a file away */
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_text(&folder, "c.yaml", CONFIG("a.list"));
  config_folder_text(&folder, "a.list", "a.test\n");
  char path[128];
  snprintf(path, sizeof path, "%s/a.list", folder.path);
  enum { SOMEBODY = 65534 };
  cr_assert_eq(chown(path, SOMEBODY, SOMEBODY), 0);
  expect(&folder, -EINVAL, "c.yaml:4: error: a.list is refused: it belongs to neither root nor");
  config_folder_remove(&folder);
}

Test(config_files, only_regular_files_are_read)
{
  struct config_folder folder;
  config_folder_make(&folder);
  char path[128];
  snprintf(path, sizeof path, "%s/fifo", folder.path);
  cr_assert_eq(mkfifo(path, 0600), 0);
  /* A loader that waits for a writer would hang here for ever: then it dies of the alarm. */
  enum { PATIENCE_S = 10 };
  alarm(PATIENCE_S);
  config_folder_text(&folder, "c.yaml", CONFIG("fifo"));
  expect(&folder, -EINVAL, "c.yaml:4: error: fifo is refused: it is not a regular file");
  config_folder_text(&folder, "c.yaml", CONFIG("/dev/null"));
  expect(&folder, -EINVAL, "/dev/null is refused: it is not a regular file");
  config_folder_text(&folder, "c.yaml", CONFIG("."));
  expect(&folder, -EINVAL, "not a regular file");
  cr_expect_eq(config_folder_load(&folder, "missing.yaml"), -EINVAL);
  cr_expect_not_null(strstr(folder.printed, "missing.yaml: error: cannot read missing.yaml: No such file"));
  config_folder_remove(&folder);
}

Test(config_files, a_list_is_named_once_and_seen_from_the_file)
{
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_text(&folder, "a.list", "a.test\n");
  config_folder_text(&folder, "c.yaml",
                     "policies:\n"
                     "  - name: p\n"
                     "    allow:\n"
                     "      - list: a.list\n"
                     "      - list: a.list\n");
  expect(&folder, -EINVAL, "c.yaml:5: error: the list a.list is named twice here");
  char text[512];
  snprintf(text, sizeof text,
           "policies:\n"
           "  - { name: p, allow: [ { list: %s/a.list } ] }\n"
           "  - { name: q, allow: [ { list: a.list } ], deny: [ b.test ] }\n"
           "egress: [ { listen: 127.0.0.1:1, policy: p } ]\n",
           folder.path);
  config_folder_text(&folder, "c.yaml", text);
  expect(&folder, 0, "");
  cr_expect_str_empty(folder.printed);
  cr_expect_eq(folder.config->policies[0].allow[0].file, folder.config->policies[1].allow[0].file);
  config_folder_remove(&folder);
}

static const struct list_row {
  const char *content;
  size_t length;
  const char *said; /* NULL: good */
} lists[] = {
#define LIST(content, said)           \
  {                                   \
    content, sizeof content - 1, said \
  }
  LIST("", NULL),
  LIST("\n\n#\n   # x\n", NULL),
  LIST("a.test # b..c\r\n", NULL),
  LIST("*.a.test\n", NULL),
  LIST("a.test\nb\0.test\n", "a.list:2: error: a NUL byte"),
  LIST("a.test\n\xff\n", "a.list:2: error: not valid UTF-8"),
  LIST("a.test\n\x1b[31m\n", "a.list:2: error: a control byte"),
  LIST("a.test\nb.test#c\n", "a.list:2: error: entry \"b.test#c\""),
  LIST("a.test b.test\n", "a.list:1: error: entry \"a.test b.test\""),
  LIST("- a.test\n", "a.list:1: error: entry \"- a.test\""),
  LIST("\"*.a.test\"\n", "no quotes"),
  LIST("*\n", "deny only"),
  LIST("\xef\xbb\xbf"
       "a.test\n",
       "letters outside ASCII"),
#undef LIST
};

Test(config_files, lists)
{
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_text(&folder, "c.yaml", CONFIG("a.list"));
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    config_folder_write(&folder, "a.list", lists[i].content, lists[i].length, 0644);
    expect(&folder, lists[i].said ? -EINVAL : 0, lists[i].said ? lists[i].said : "");
  }
  config_folder_remove(&folder);
}

Test(config_files, the_main_file_is_bounded_text)
{
  struct config_folder folder;
  config_folder_make(&folder);
  config_folder_write(&folder, "c.yaml", "user: a\nx\0\n", 11, 0644);
  expect(&folder, -EINVAL, "c.yaml:2: error: a NUL byte");
  config_folder_write(&folder, "c.yaml", "\xff\xfeu\0s\0", 6, 0644);
  expect(&folder, -EINVAL, "c.yaml:1: error: not valid UTF-8");
  char *large = malloc(CONFIG_FILE_BYTES_MAX + 1);
  cr_assert_not_null(large);
  memset(large, '#', CONFIG_FILE_BYTES_MAX + 1);
  config_folder_write(&folder, "c.yaml", large, CONFIG_FILE_BYTES_MAX + 1, 0644);
  expect(&folder, -EINVAL, "it is too large");
  config_folder_write(&folder, "c.yaml", large, CONFIG_FILE_BYTES_MAX, 0644);
  expect(&folder, -EINVAL, "the file is empty");
  free(large);
  config_folder_remove(&folder);
}

static const struct utf8_row {
  const char *bytes;
  unsigned line; /* of the fault; 0: none */
} utf8_rows[] = {
  {"plain\ttext\r\n", 0},
  {"\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf", 0},
  {"\n\n\x80", 3},
  {"\xc0\xaf", 1},
  {"\xc1\xbf", 1},
  {"\xe0\x9f\xbf", 1},
  {"\xed\xa0\x80", 1},
  {"\xf0\x8f\xbf\xbf", 1},
  {"\xf4\x90\x80\x80", 1},
  {"\xf5\x80\x80\x80", 1},
  {"\xc3", 1},
  {"\xe2\x82", 1},
  {"\xf0\x9f\x98", 1},
  {"\xe2\x82\n\xac", 1},
  {"a\n\x7f", 2},
};

Test(config_files, utf8)
{
  for (size_t i = 0; i < sizeof utf8_rows / sizeof utf8_rows[0]; i++) {
    unsigned line = 0;
    const char *wrong = utf8_find_invalid(utf8_rows[i].bytes, strlen(utf8_rows[i].bytes), &line);
    cr_expect_eq(wrong != NULL, utf8_rows[i].line > 0, "row %zu", i);
    if (wrong)
      cr_expect_eq(line, utf8_rows[i].line, "row %zu", i);
  }
}
