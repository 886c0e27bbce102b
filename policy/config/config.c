#include "policy/config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/config/build.h"
#include "policy/config/rules.h"
#include "policy/config/schema.h"
#include "policy/config/source.h"
#include "shared/limits.h"

static void clear_rules(struct draft_rules *rules)
{
  for (size_t i = 0; i < rules->count; i++)
    rule_clear(&rules->rules[i]);
  free(rules->rules);
}

void draft_clear(struct draft *draft)
{
  for (size_t i = 0; i < draft->policy_count; i++) {
    text_clear(&draft->policies[i].name);
    text_clear(&draft->policies[i].message);
    clear_rules(&draft->policies[i].allow);
    clear_rules(&draft->policies[i].deny);
  }
  for (size_t i = 0; i < draft->listener_count; i++) {
    text_clear(&draft->listeners[i].listen);
    text_clear(&draft->listeners[i].policy);
  }
  free(draft->policies);
  free(draft->listeners);
  text_clear(&draft->user);
  text_clear(&draft->audit);
  text_clear(&draft->hosts_file);
  texts_clear(&draft->nameservers);
  *draft = (struct draft){0};
}

static void read_draft(struct draft *draft, const char *file)
{
  char *content;
  size_t length;
  int result = source_read(file, CONFIG_FILE_BYTES_MAX, draft->report, file, 0, &content, &length);
  if (result == -ENOMEM)
    draft->report->out_of_memory = true;
  if (result < 0)
    return;
  struct walk walk = {.file = file, .report = draft->report, .draft = draft};
  walk_document(&walk, content, length, &schema_root, draft);
  free(content);
  build_config(draft, file);
}

int config_load(const char *path, struct config **ret, struct config_report *report)
{
  struct report_builder builder = {0};
  struct config *config = calloc(1, sizeof *config);
  struct draft draft = {.config = config, .report = &builder};
  schema_defaults(&draft);
  const char *file = config ? rules_file_name(&draft, path) : NULL;
  if (file && (config->path = strdup(path)) != NULL)
    read_draft(&draft, file);
  else
    builder.out_of_memory = true;
  draft_clear(&draft);

  size_t errors = builder.report.errors;
  bool out_of_memory = builder.out_of_memory;
  report_finish(&builder, path, report);
  if (errors > 0 || out_of_memory) {
    config_free(config);
    return errors > 0 ? -EINVAL : -ENOMEM;
  }
  *ret = config;
  return 0;
}

void config_free(struct config *config)
{
  if (!config)
    return;
  for (size_t i = 0; i < config->policy_count; i++)
    policy_clear(&config->policies[i]);
  for (size_t i = 0; i < config->egress_count; i++)
    free(config->egress[i].text);
  for (size_t i = 0; i < config->file_count; i++)
    free(config->files[i]);
  free(config->policies);
  free(config->egress);
  free(config->files);
  free(config->path);
  free(config->user);
  free(config->audit);
  free(config->nameservers);
  free(config->hosts_file);
  free(config);
}

const struct policy *config_policy(const struct config *config, const char *name)
{
  for (size_t i = 0; i < config->policy_count; i++) {
    if (strcmp(config->policies[i].name, name) == 0)
      return &config->policies[i];
  }
  return NULL;
}
