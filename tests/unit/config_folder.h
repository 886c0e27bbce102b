/* A folder of configuration files that a test writes, and that is gone afterwards. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "policy/config/config.h"

struct config_folder {
  char path[64];
  struct config *config; /* of the last load; NULL when it failed */
  struct config_report report;
  char printed[65536]; /* the report as people see it, the folder's path taken out */
};

void config_folder_make(struct config_folder *folder);
void config_folder_write(const struct config_folder *folder, const char *name, const void *content, size_t length,
                         mode_t mode);
void config_folder_text(const struct config_folder *folder, const char *name, const char *text);

/* Loads `name`; returns what config_load does. */
int config_folder_load(struct config_folder *folder, const char *name);

/* Frees the last load and removes the folder with the files in it. */
void config_folder_remove(struct config_folder *folder);
