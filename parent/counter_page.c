#include "parent/counter_page.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "shared/descriptors.h"

int counter_page_create(int *ret_descriptor, const struct counters **ret_page)
{
  cleanup_fd int fd = memfd_create("sallyport-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return -errno;
  if (ftruncate(fd, sizeof(struct counters)) < 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
    return -errno;
  void *page = mmap(NULL, sizeof(struct counters), PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED)
    return -errno;
  *ret_page = page;
  *ret_descriptor = steal_fd(&fd);
  return 0;
}

void counter_page_unmap(const struct counters *page)
{
  if (page)
    munmap((void *)(uintptr_t)page, sizeof *page);
}
