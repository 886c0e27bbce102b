#include "parent/supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "parent/child.h"
#include "parent/counter_page.h"
#include "parent/spawn.h"
#include "shared/channel.h"
#include "shared/clock.h"
#include "shared/descriptors.h"
#include "shared/log.h"

#define EXIT_RUNTIME 1
#define EXIT_CONFINEMENT 4

static struct timeval milliseconds(unsigned ms)
{
  return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

static int spawn_with_descriptors(struct child *child, int channel, int counters, int log)
{
  const struct supervisor_settings *set = &child->supervisor->set;
  struct spawn_descriptor descriptors[LISTENERS_MAX + 2];
  size_t count = 0;
  descriptors[count++] = (struct spawn_descriptor){channel, CHILD_CHANNEL_FD};
  if (child->role == ROLE_WORKER) {
    descriptors[count++] = (struct spawn_descriptor){counters, CHILD_COUNTERS_FD};
    for (size_t i = 0; i < set->listener_count; i++)
      descriptors[count++] = (struct spawn_descriptor){set->listeners[i], CHILD_LISTENER_FD_FIRST + (int)i};
  }
  struct spawn_request request = {
    .role = child->role,
    .binary = child->role == ROLE_WORKER ? child->supervisor->worker_binary : child->supervisor->resolver_binary,
    .title = child->title,
    .best_effort = set->config->confinement == CONFINEMENT_BEST_EFFORT,
    .uid = set->uid,
    .gid = set->gid,
    .descriptors_max = set->descriptors_max,
    .log = log,
    .descriptors = descriptors,
    .descriptor_count = count,
  };
  return spawn_child(&request, &child->pid);
}

static void remember_counters(struct child *child)
{
  if (!child->page)
    return;
  for (unsigned i = 0; i < COUNTER_COUNT; i++)
    if (i != COUNTER_SESSIONS_OPEN && i != COUNTER_TUNNELS_OPEN)
      child->former.values[i] += counter_read(child->page, i);
  counter_page_unmap(child->page);
  child->page = NULL;
}

static void close_log(struct child *child)
{
  child_log_close(child->log);
  child->log = NULL;
}

int child_launch(struct child *child)
{
  cleanup_fd int ours = -1;
  cleanup_fd int theirs = -1;
  cleanup_fd int counters = -1;
  cleanup_fd int log = -1;
  int failed = channel_pair(&ours, &theirs);
  if (failed == 0 && child->role == ROLE_WORKER)
    failed = counter_page_create(&counters, &child->page);
  if (failed == 0)
    failed = child_log_open(child->supervisor->set.base, child->title + strlen("sallyport: "), &child->log, &log);
  if (failed == 0)
    failed = spawn_with_descriptors(child, theirs, counters, log);
  if (failed < 0) {
    close_log(child);
    counter_page_unmap(child->page);
    child->page = NULL;
    return failed;
  }
  child->channel = steal_fd(&ours);
  child->state = LINK_STARTING;
  child->started_ms = clock_monotonic_ms();
  struct event_base *base = child->supervisor->set.base;
  struct timeval patience = milliseconds(CHILD_READY_TIMEOUT_MS);
  event_assign(child->readable, base, child->channel, EV_READ | EV_PERSIST, child_readable, child);
  event_assign(child->writable, base, child->channel, EV_WRITE | EV_PERSIST, child_writable, child);
  event_add(child->readable, NULL);
  event_add(child->ready_timer, &patience);
  return 0;
}

void child_kill(struct child *child)
{
  if (child->pid > 0)
    kill(child->pid, SIGKILL);
  child_unlink(child);
}

static void not_ready_in_time(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  child_misbehaved(argument, "not ready in time");
}

static void stalled(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  child_misbehaved(argument, "it does not read its messages");
}

static void restart(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct child *child = argument;
  int failed = child_launch(child);
  if (failed == 0)
    return;
  log_error("%s cannot be started: %s; tried again in %u ms", child->title, strerror(-failed), child->backoff_ms);
  struct timeval pause = milliseconds(child->backoff_ms);
  event_add(child->restart_timer, &pause);
}

static void schedule_restart(struct child *child)
{
  bool stable = clock_monotonic_ms() - child->started_ms >= CHILD_STABLE_MS;
  unsigned pause_ms = stable || child->backoff_ms == 0 ? CHILD_BACKOFF_FIRST_MS : child->backoff_ms;
  child->backoff_ms = pause_ms * 2 > CHILD_BACKOFF_MAX_MS ? CHILD_BACKOFF_MAX_MS : pause_ms * 2;
  struct timeval pause = milliseconds(pause_ms);
  event_add(child->restart_timer, &pause);
}

static void describe_end(int status, char *ret, size_t size)
{
  if (WIFSIGNALED(status))
    snprintf(ret, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(ret, size, "exit code %d", WEXITSTATUS(status));
}

static bool anyone_left(const struct supervisor *s, enum role role)
{
  for (size_t i = 0; i < s->count; i++)
    if (s->children[i].role == role && s->children[i].pid > 0)
      return true;
  return false;
}

static void ended(struct child *child, int status)
{
  struct supervisor *s = child->supervisor;
  char how[80];
  close_log(child); /* its last words come before the line about its end */
  describe_end(status, how, sizeof how);
  log_write(s->draining ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING, "%s (pid %d) ended: %s",
            child->title + strlen("sallyport: "), (int)child->pid, how);
  if (!s->draining) {
    audit_line_begin(s->set.audit, AUDIT_REPORT, "child-ended");
    audit_text(s->set.audit, "child", child->title + strlen("sallyport: "));
    audit_number(s->set.audit, "pid", (uint64_t)child->pid);
    audit_text(s->set.audit, "how", how);
    audit_line_end(s->set.audit);
  }
  child->pid = 0;
  child_unlink(child);
  remember_counters(child);
  if (s->draining) {
    if (!anyone_left(s, ROLE_WORKER))
      s->set.handler->finished(s->set.context, 0);
  } else if (s->starting) {
    /* The reason stands in the child's own log line above. */
    bool confinement = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CONFINEMENT;
    s->set.handler->finished(s->set.context, confinement ? EXIT_CONFINEMENT : EXIT_RUNTIME);
  } else {
    schedule_restart(child);
  }
}

static void reap(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct supervisor *s = argument;
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
    for (size_t i = 0; i < s->count; i++)
      if (s->children[i].pid == pid)
        ended(&s->children[i], status);
}

static int prepare_child(struct supervisor *s, struct child *child, enum role role, unsigned index)
{
  struct event_base *base = s->set.base;
  child->supervisor = s;
  child->role = role;
  child->index = index;
  child->channel = -1;
  snprintf(child->title, sizeof child->title, role == ROLE_WORKER ? "sallyport: %s %u" : "sallyport: %s",
           role_name(role), index);
  child->readable = event_new(base, -1, EV_READ, child_readable, child);
  child->writable = event_new(base, -1, EV_WRITE, child_writable, child);
  child->ready_timer = evtimer_new(base, not_ready_in_time, child);
  child->stalled_timer = evtimer_new(base, stalled, child);
  child->restart_timer = evtimer_new(base, restart, child);
  bool made = child->readable && child->writable && child->ready_timer && child->stalled_timer && child->restart_timer;
  return made ? 0 : -ENOMEM;
}

static int find_binary(const char *name, char **ret)
{
  int failed = spawn_find_binary(name, ret);
  if (failed < 0)
    log_error("%s is neither beside this program nor in %s (%s): install it there", name, SALLYPORT_LIBEXECDIR,
              strerror(-failed));
  return failed;
}

int supervisor_new(const struct supervisor_settings *settings, struct supervisor **ret)
{
  struct supervisor *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  s->set = *settings;
  memcpy(s->listeners, settings->listeners, settings->listener_count * sizeof *s->listeners);
  s->set.listeners = s->listeners;
  s->count = settings->workers + 1;
  s->children = calloc(s->count, sizeof *s->children);
  s->child_ended = evsignal_new(settings->base, SIGCHLD, reap, s);
  int failed = s->children && s->child_ended ? 0 : -ENOMEM;
  for (size_t i = 0; failed == 0 && i < s->count; i++) {
    bool worker = i < settings->workers;
    failed = prepare_child(s, &s->children[i], worker ? ROLE_WORKER : ROLE_RESOLVER, worker ? (unsigned)i : 0);
  }
  if (failed == 0)
    failed = find_binary("sallyport-worker", &s->worker_binary);
  if (failed == 0)
    failed = find_binary("sallyport-resolver", &s->resolver_binary);
  if (failed < 0) {
    supervisor_free(s);
    return failed;
  }
  event_add(s->child_ended, NULL);
  *ret = s;
  return 0;
}

static void free_event(struct event *event)
{
  if (event)
    event_free(event);
}

void supervisor_free(struct supervisor *s)
{
  for (size_t i = 0; s->children && i < s->count; i++) {
    struct child *child = &s->children[i];
    close_log(child);
    child_queue_clear(&child->queue);
    counter_page_unmap(child->page);
    free_event(child->readable);
    free_event(child->writable);
    free_event(child->ready_timer);
    free_event(child->stalled_timer);
    free_event(child->restart_timer);
    descriptor_close(&child->channel);
  }
  free_event(s->child_ended);
  free(s->children);
  free(s->worker_binary);
  free(s->resolver_binary);
  free(s);
}

int supervisor_start(struct supervisor *s)
{
  s->starting = true;
  s->waiting_ready = s->count;
  for (size_t i = 0; i < s->count; i++) {
    int failed = child_launch(&s->children[i]);
    if (failed < 0)
      return failed;
  }
  return 0;
}

void supervisor_drain(struct supervisor *s)
{
  s->draining = true;
  struct msg_drain drain = {.type = MSG_DRAIN};
  for (size_t i = 0; i < s->count; i++) {
    struct child *child = &s->children[i];
    event_del(child->restart_timer);
    if (child->role != ROLE_WORKER || child->pid == 0)
      continue;
    if (child_serving(child))
      child_send(child, &drain, -1);
    else
      child_kill(child);
  }
  if (!anyone_left(s, ROLE_WORKER))
    s->set.handler->finished(s->set.context, 0);
}

void supervisor_end(struct supervisor *s)
{
  s->draining = true;
  struct msg_end end = {.type = MSG_END};
  for (size_t i = 0; i < s->count; i++)
    if (s->children[i].role == ROLE_WORKER && child_serving(&s->children[i]))
      child_send(&s->children[i], &end, -1);
}

void supervisor_kill(struct supervisor *s)
{
  s->draining = true;
  for (size_t i = 0; i < s->count; i++) {
    event_del(s->children[i].restart_timer);
    child_kill(&s->children[i]);
  }
  for (size_t i = 0; i < s->count; i++)
    if (s->children[i].pid > 0) {
      waitpid(s->children[i].pid, NULL, 0);
      s->children[i].pid = 0;
      close_log(&s->children[i]);
      remember_counters(&s->children[i]);
    }
}

enum role child_role(const struct child *child)
{
  return child->role;
}

unsigned child_index(const struct child *child)
{
  return child->index;
}

bool child_serving(const struct child *child)
{
  return child->channel >= 0 && child->state != LINK_STARTING;
}

struct child *supervisor_resolver(struct supervisor *s)
{
  struct child *resolver = &s->children[s->count - 1];
  return child_serving(resolver) ? resolver : NULL;
}

uint64_t supervisor_counter(const struct supervisor *s, enum counter counter)
{
  uint64_t sum = 0;
  for (size_t i = 0; i < s->count; i++) {
    sum += s->children[i].former.values[counter];
    if (s->children[i].page)
      sum += counter_read(s->children[i].page, counter);
  }
  return sum;
}

uint32_t supervisor_done(const struct supervisor *s)
{
  uint32_t done = UINT32_MAX;
  for (size_t i = 0; i < s->count; i++)
    done &= s->children[i].done;
  return done;
}

uint32_t supervisor_waived(const struct supervisor *s)
{
  uint32_t waived = 0;
  for (size_t i = 0; i < s->count; i++)
    waived |= s->children[i].waived;
  return waived;
}
