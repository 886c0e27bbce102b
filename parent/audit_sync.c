#include "parent/audit_sync.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/capability.h>
#include <time.h>
#include <unistd.h>

struct audit_sync {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  unsigned interval_ms;
  int fd;      /* to be synced; -1: nothing to do */
  int busy_fd; /* being synced now; -1: none */
  int error;   /* read without the lock by the event loop */
  bool stopping;
};

static void drop_capabilities(void)
{
  cap_t none = cap_init();
  if (none) {
    (void)cap_set_proc(none);
    cap_free(none);
  }
}

/* Waits out the interval, or the order to stop. Called and returns with the lock held. */
static void pause_locked(struct audit_sync *sync)
{
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += sync->interval_ms / 1000;
  until.tv_nsec += (long)(sync->interval_ms % 1000) * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000L;
  }
  while (!sync->stopping)
    if (pthread_cond_timedwait(&sync->changed, &sync->lock, &until) == ETIMEDOUT)
      return;
}

static void sync_once_locked(struct audit_sync *sync)
{
  sync->busy_fd = sync->fd;
  sync->fd = -1;
  pthread_mutex_unlock(&sync->lock);
  /* A log on a pipe or a terminal cannot be synced, and need not be. */
  int error = fdatasync(sync->busy_fd) < 0 && errno != EINVAL && errno != EROFS ? errno : 0;
  __atomic_store_n(&sync->error, error, __ATOMIC_RELAXED);
  pthread_mutex_lock(&sync->lock);
  sync->busy_fd = -1;
  pthread_cond_broadcast(&sync->changed);
}

static void *run(void *argument)
{
  struct audit_sync *sync = argument;
  drop_capabilities();
  pthread_mutex_lock(&sync->lock);
  while (!sync->stopping || sync->fd >= 0) {
    if (sync->fd < 0) {
      pthread_cond_wait(&sync->changed, &sync->lock);
      continue;
    }
    sync_once_locked(sync);
    pause_locked(sync);
  }
  pthread_mutex_unlock(&sync->lock);
  return NULL;
}

int audit_sync_start(unsigned interval_ms, struct audit_sync **ret)
{
  struct audit_sync *sync = calloc(1, sizeof *sync);
  if (!sync)
    return -ENOMEM;
  sync->interval_ms = interval_ms;
  sync->fd = sync->busy_fd = -1;
  pthread_mutex_init(&sync->lock, NULL);
  pthread_cond_init(&sync->changed, NULL);
  /* Signals belong to the event loop. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&sync->thread, NULL, run, sync);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    free(sync);
    return -failed;
  }
  *ret = sync;
  return 0;
}

void audit_sync_mark(struct audit_sync *sync, int fd)
{
  pthread_mutex_lock(&sync->lock);
  if (sync->fd != fd) {
    sync->fd = fd;
    pthread_cond_broadcast(&sync->changed);
  }
  pthread_mutex_unlock(&sync->lock);
}

void audit_sync_forget(struct audit_sync *sync)
{
  pthread_mutex_lock(&sync->lock);
  sync->fd = -1;
  while (sync->busy_fd >= 0)
    pthread_cond_wait(&sync->changed, &sync->lock);
  pthread_mutex_unlock(&sync->lock);
}

int audit_sync_error(const struct audit_sync *sync)
{
  return __atomic_load_n(&sync->error, __ATOMIC_RELAXED);
}

void audit_sync_stop(struct audit_sync *sync)
{
  pthread_mutex_lock(&sync->lock);
  sync->stopping = true;
  pthread_cond_broadcast(&sync->changed);
  pthread_mutex_unlock(&sync->lock);
  pthread_join(sync->thread, NULL);
  pthread_cond_destroy(&sync->changed);
  pthread_mutex_destroy(&sync->lock);
  free(sync);
}
