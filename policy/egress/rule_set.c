#include "policy/egress/rule_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/egress/prefix.h"

#define LENGTHS (128 + 1)
#define FNV_OFFSET 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

/* Positions are kept plus one, so that zeroed memory is an empty table. */
struct rule_set {
  const struct rule *rules;
  size_t count;
  uint32_t *slots;
  uint32_t *next;
  uint32_t mask;
  uint32_t any;
  bool has_length[2][LENGTHS]; /* by family: IPv4, IPv6 */
};

struct key {
  enum rule_kind kind;
  const char *name;
  struct prefix prefix; /* masked */
};

static struct key key_of(const struct rule *rule)
{
  struct key key = {.kind = rule->kind, .name = rule->host};
  if (rule->kind == RULE_PREFIX)
    key.prefix = prefix_masked(&rule->prefix);
  return key;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
  const uint8_t *at = bytes;
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ at[i]) * FNV_PRIME;
  return hash;
}

static uint32_t key_hash(const struct key *key)
{
  uint64_t hash = (FNV_OFFSET ^ (uint64_t)key->kind) * FNV_PRIME;
  if (key->kind == RULE_PREFIX) {
    hash = hash_bytes(hash, &key->prefix.length, sizeof key->prefix.length);
    hash = hash_bytes(hash, &key->prefix.network.family, sizeof key->prefix.network.family);
    hash = hash_bytes(hash, key->prefix.network.bytes, sizeof key->prefix.network.bytes);
  } else {
    hash = hash_bytes(hash, key->name, strlen(key->name));
  }
  return (uint32_t)(hash ^ (hash >> 32));
}

static bool key_equal(const struct key *a, const struct key *b)
{
  if (a->kind != b->kind)
    return false;
  if (a->kind == RULE_PREFIX)
    return a->prefix.length == b->prefix.length && address_equal(&a->prefix.network, &b->prefix.network);
  return strcmp(a->name, b->name) == 0;
}

/* The slot of the key, or the empty slot where it would stand. The table is never full. */
static uint32_t find_slot(const struct rule_set *set, const struct key *key)
{
  uint32_t slot = key_hash(key) & set->mask;
  while (set->slots[slot] != 0) {
    struct key other = key_of(&set->rules[set->slots[slot] - 1]);
    if (key_equal(key, &other))
      break;
    slot = (slot + 1) & set->mask;
  }
  return slot;
}

static void insert(struct rule_set *set, uint32_t position)
{
  const struct rule *rule = &set->rules[position - 1];
  uint32_t *head = &set->any;
  if (rule->kind != RULE_ANY) {
    struct key key = key_of(rule);
    head = &set->slots[find_slot(set, &key)];
  }
  if (rule->kind == RULE_PREFIX)
    set->has_length[rule->prefix.network.family == 6][rule->prefix.length] = true;
  set->next[position - 1] = *head;
  *head = position;
}

int rule_set_build(const struct rule *rules, size_t count, struct rule_set **ret)
{
  size_t slots = 2;
  while (slots < count * 2)
    slots *= 2;
  if (slots > UINT32_MAX / 2)
    return -ENOMEM;
  struct rule_set *set = calloc(1, sizeof *set);
  if (!set)
    return -ENOMEM;
  set->rules = rules;
  set->count = count;
  set->mask = (uint32_t)(slots - 1);
  set->slots = calloc(slots, sizeof *set->slots);
  set->next = calloc(count + 1, sizeof *set->next);
  if (!set->slots || !set->next) {
    rule_set_free(set);
    return -ENOMEM;
  }
  /* Last to first, each at the head of its chain: chains are in the order of the policy. */
  for (size_t position = count; position > 0; position--)
    insert(set, (uint32_t)position);
  *ret = set;
  return 0;
}

void rule_set_free(struct rule_set *set)
{
  if (!set)
    return;
  free(set->slots);
  free(set->next);
  free(set);
}

static const struct rule *rule_at(const struct rule_set *set, uint32_t position)
{
  return position == 0 ? NULL : &set->rules[position - 1];
}

static const struct rule *find(const struct rule_set *set, const struct key *key)
{
  return set ? rule_at(set, set->slots[find_slot(set, key)]) : NULL;
}

const struct rule *rule_set_host(const struct rule_set *set, const char *name)
{
  return find(set, &(struct key){.kind = RULE_HOST, .name = name});
}

const struct rule *rule_set_wildcard(const struct rule_set *set, const char *base)
{
  return find(set, &(struct key){.kind = RULE_WILDCARD, .name = base});
}

const struct rule *rule_set_prefix(const struct rule_set *set, const struct prefix *prefix)
{
  return find(set, &(struct key){.kind = RULE_PREFIX, .prefix = *prefix});
}

const struct rule *rule_set_any(const struct rule_set *set)
{
  return set ? rule_at(set, set->any) : NULL;
}

const struct rule *rule_set_next(const struct rule_set *set, const struct rule *rule)
{
  return rule_at(set, set->next[rule - set->rules]);
}

int rule_set_shorter(const struct rule_set *set, uint8_t family, int below)
{
  int length = below < LENGTHS ? below - 1 : LENGTHS - 1;
  while (set && length >= 0 && !set->has_length[family == 6][length])
    length--;
  return set ? length : -1;
}

bool rule_has_port(const struct rule *rule, uint16_t port)
{
  for (size_t i = 0; i < rule->port_count; i++) {
    if (rule->ports[i].first <= port && port <= rule->ports[i].last)
      return true;
  }
  return false;
}
