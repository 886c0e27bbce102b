#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parent/audit.h"

static char folder[] = "/tmp/sallyport-audit-XXXXXX";
static char path[64];
static struct audit *audit;

static void set_up(void)
{
  signal(SIGXFSZ, SIG_IGN);
  cr_assert_not_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/audit.jsonl", folder);
  cr_assert_eq(audit_open(path, 100, &audit), 0);
}

static void tear_down(void)
{
  audit_close(audit);
  unlink(path);
  rmdir(folder);
}

TestSuite(audit, .init = set_up, .fini = tear_down);

static void line(enum audit_kind kind, const char *event, const char *value)
{
  audit_line_begin(audit, kind, event);
  audit_text(audit, "value", value);
  audit_line_end(audit);
}

/* How many lines the file has; each must be a JSON object. */
static int sound_lines(void)
{
  FILE *file = fopen(path, "r");
  char text[32768];
  int count = 0;
  while (file && fgets(text, sizeof text, file)) {
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    cr_expect(json_is_object(object), "not an object: %s", text);
    cr_expect_eq(text[strlen(text) - 1], '\n');
    json_decref(object);
    count++;
  }
  if (file)
    fclose(file);
  return count;
}

static void limit_file_size(rlim_t bytes)
{
  struct rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

static off_t file_size(void)
{
  struct stat now;
  return stat(path, &now) == 0 ? now.st_size : -1;
}

Test(audit, hostile_text_cannot_break_a_line)
{
  char hostile[256];
  for (int i = 0; i < 255; i++)
    hostile[i] = (char)(i + 1);
  hostile[255] = '\0';
  line(AUDIT_GATE, "grant", hostile);
  line(AUDIT_GATE, "grant", "\",\"verdict\":\"allow\"}\n{");
  cr_expect(audit_commit(audit));
  cr_expect_eq(sound_lines(), 2);
}

Test(audit, a_gate_line_is_in_the_file_when_commit_says_so)
{
  line(AUDIT_GATE, "grant", "x");
  cr_expect_eq(sound_lines(), 0);
  cr_expect(audit_commit(audit));
  cr_expect_eq(sound_lines(), 1);
}

Test(audit, a_full_disk_refuses_leaves_no_partial_line_and_recovers)
{
  line(AUDIT_GATE, "grant", "first");
  cr_assert(audit_commit(audit));
  off_t before = file_size();
  limit_file_size((rlim_t)before + 20); /* some bytes of the line still fit */
  line(AUDIT_GATE, "grant", "second");
  line(AUDIT_REPORT, "end", "kept");
  cr_expect_not(audit_commit(audit));
  cr_expect(audit_is_broken(audit));
  cr_expect_eq(file_size(), before);
  limit_file_size(RLIM_INFINITY);
  line(AUDIT_GATE, "grant", "third");
  cr_expect(audit_commit(audit));
  cr_expect_not(audit_is_broken(audit));
  cr_expect_eq(sound_lines(), 3, "first, the kept report, third; the refused gate line is gone");
}

Test(audit, reports_kept_for_a_full_disk_are_bounded_and_counted)
{
  limit_file_size(0);
  for (int i = 0; i < 50000; i++)
    line(AUDIT_REPORT, "end", "a report of some length that waits for the disk");
  cr_expect_not(audit_commit(audit));
  limit_file_size(RLIM_INFINITY);
  cr_expect(audit_commit(audit));
  cr_expect(audit_commit(audit)); /* the line about the gap comes with the next batch */
  cr_expect_lt(file_size(), 2 << 20);
  FILE *file = fopen(path, "r");
  char text[4096];
  bool gap = false;
  while (fgets(text, sizeof text, file))
    gap = gap || strstr(text, "\"reports_lost\"");
  fclose(file);
  cr_expect(gap);
}

Test(audit, a_removed_file_is_made_anew)
{
  line(AUDIT_GATE, "grant", "x");
  cr_assert(audit_commit(audit));
  unlink(path);
  line(AUDIT_GATE, "grant", "y");
  cr_expect(audit_commit(audit));
  cr_expect_eq(sound_lines(), 1);
}

Test(audit, a_removed_folder_refuses)
{
  unlink(path);
  rmdir(folder);
  line(AUDIT_GATE, "grant", "y");
  cr_expect_not(audit_commit(audit));
  mkdir(folder, 0700);
  line(AUDIT_GATE, "grant", "z");
  cr_expect(audit_commit(audit));
  cr_expect_eq(sound_lines(), 1);
}

Test(audit, a_partial_last_line_of_a_crash_does_not_swallow_the_next)
{
  int fd = open(path, O_WRONLY | O_APPEND);
  cr_assert_eq(write(fd, "{\"time\":", 8), 8);
  close(fd);
  audit_close(audit);
  cr_assert_eq(audit_open(path, 100, &audit), 0);
  audit_line_begin(audit, AUDIT_GATE, "grant");
  audit_line_end(audit);
  cr_expect(audit_commit(audit));
  FILE *file = fopen(path, "r");
  char text[256];
  cr_assert_not_null(fgets(text, sizeof text, file));
  cr_assert_not_null(fgets(text, sizeof text, file));
  fclose(file);
  cr_expect_not_null(strstr(text, "\"event\":\"grant\""));
}

Test(audit, a_rotated_file_is_left_alone_and_a_new_one_written)
{
  char aside[80];
  snprintf(aside, sizeof aside, "%s.1", path);
  line(AUDIT_GATE, "grant", "x");
  cr_assert(audit_commit(audit));
  off_t before = file_size();
  cr_assert_eq(rename(path, aside), 0);
  line(AUDIT_GATE, "grant", "y");
  cr_expect(audit_commit(audit));
  cr_expect_eq(sound_lines(), 1);
  struct stat now;
  cr_assert_eq(stat(aside, &now), 0);
  cr_expect_eq(now.st_size, before);
  unlink(aside);
}

Test(audit, a_second_daemon_is_refused)
{
  struct audit *second;
  cr_expect_eq(audit_open(path, 100, &second), -EBUSY);
}

Test(audit, thousands_of_reports_in_one_round_are_all_written)
{
  const int reports = 20000;
  for (int i = 0; i < reports; i++)
    line(AUDIT_REPORT, "end", "a worker died with many tunnels, each of which has its line");
  cr_expect(audit_commit(audit));
  cr_expect_eq(sound_lines(), reports);
}

Test(audit, a_symbolic_link_is_refused_with_a_hint)
{
  char name[80];
  struct audit *second;
  snprintf(name, sizeof name, "%s.link", path);
  cr_assert_eq(symlink(path, name), 0);
  int failed = audit_open(name, 100, &second);
  cr_expect_eq(failed, -ELOOP);
  cr_expect_not_null(strstr(audit_open_hint(failed), "symbolic link"));
  unlink(name);
}
