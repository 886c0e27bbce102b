#include "child/resolver/address_list.h"

bool address_list_add(struct address_list *list, const struct address *address)
{
  for (size_t i = 0; i < list->count; i++)
    if (address_equal(&list->addresses[i], address))
      return true;
  if (list->count == LOOKUP_ADDRESSES_MAX)
    return false;
  list->addresses[list->count++] = *address;
  return true;
}

void address_list_interleave(const struct address_list *v6, const struct address_list *v4, struct address_list *ret)
{
  *ret = (struct address_list){0};
  for (size_t i = 0; i < LOOKUP_ADDRESSES_MAX; i++) {
    if (i < v6->count)
      (void)address_list_add(ret, &v6->addresses[i]);
    if (i < v4->count)
      (void)address_list_add(ret, &v4->addresses[i]);
  }
}
