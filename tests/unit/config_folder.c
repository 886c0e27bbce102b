#include "tests/unit/config_folder.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#define PATH_SIZE 256

static void full_path(const struct config_folder *folder, const char *name, char ret[PATH_SIZE])
{
  snprintf(ret, PATH_SIZE, "%s/%s", folder->path, name);
}

void config_folder_make(struct config_folder *folder)
{
  *folder = (struct config_folder){.path = "/tmp/sallyport-config-XXXXXX"};
  cr_assert_not_null(mkdtemp(folder->path));
}

void config_folder_write(const struct config_folder *folder, const char *name, const void *content, size_t length,
                         mode_t mode)
{
  char path[PATH_SIZE];
  full_path(folder, name, path);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  cr_assert_geq(fd, 0);
  for (size_t written = 0; written < length;) {
    ssize_t put = write(fd, (const char *)content + written, length - written);
    cr_assert_gt(put, 0);
    written += (size_t)put;
  }
  cr_assert_eq(fchmod(fd, mode), 0);
  close(fd);
}

void config_folder_text(const struct config_folder *folder, const char *name, const char *text)
{
  config_folder_write(folder, name, text, strlen(text), 0644);
}

static void forget(struct config_folder *folder)
{
  config_free(folder->config);
  folder->config = NULL;
  config_report_clear(&folder->report);
}

/* What config_report_print says, without "/tmp/sallyport-config-XXXXXX/". */
static void print_report(struct config_folder *folder)
{
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  cr_assert_not_null(stream);
  config_report_print(&folder->report, stream);
  fclose(stream);
  size_t used = 0, prefix = strlen(folder->path);
  for (const char *at = text; *at != '\0' && used + 1 < sizeof folder->printed;) {
    if (strncmp(at, folder->path, prefix) == 0 && at[prefix] == '/')
      at += prefix + 1;
    else
      folder->printed[used++] = *at++;
  }
  folder->printed[used] = '\0';
  free(text);
}

int config_folder_load(struct config_folder *folder, const char *name)
{
  char path[PATH_SIZE];
  full_path(folder, name, path);
  forget(folder);
  int result = config_load(path, &folder->config, &folder->report);
  print_report(folder);
  return result;
}

void config_folder_remove(struct config_folder *folder)
{
  forget(folder);
  DIR *directory = opendir(folder->path);
  cr_assert_not_null(directory);
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    cr_assert_eq(unlinkat(dirfd(directory), entry->d_name, 0), 0);
  }
  closedir(directory);
  cr_assert_eq(rmdir(folder->path), 0);
#if defined(__SANITIZE_ADDRESS__)
  /* Criterion ends its workers without the check at exit. */
  cr_expect_eq(__lsan_do_recoverable_leak_check(), 0, "the configuration leaks");
#endif
}
