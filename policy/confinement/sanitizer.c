/* Only in builds for tests. LeakSanitizer looks at its process from a thread of its own, which a filter forbids: leaks
   are looked for where there is none, in unit tests. */
#ifdef SALLYPORT_SANITIZER
#include <linux/seccomp.h>
#include <sys/prctl.h>

/* Asked by the runtime at the end of the process. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
  return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
}
#endif
