#include "parent/daemon.h"

#include <errno.h>
#include <event2/event.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "parent/answer_egress.h"
#include "parent/cmd_run.h"
#include "parent/daemon_report.h"
#include "parent/listeners.h"
#include "parent/nameservers.h"
#include "parent/readiness.h"
#include "parent/supervise.h"
#include "shared/descriptors.h"
#include "shared/log.h"

#define DESCRIPTORS_WANTED 131072
#define END_PATIENCE_S 1
#define AUDIT_RETRY_MS 250

struct daemon {
  const struct config *config;
  struct event_base *base;
  struct audit *audit;
  struct listeners *listeners;
  struct egress *egress;
  struct supervisor *supervisor;
  struct nameservers nameservers;
  struct event *signals[5];
  struct event *drain_timer;
  struct event *end_timer;
  struct event *audit_timer;
  unsigned workers;
  unsigned not_ready;   /* children that have not served for the first time */
  unsigned descriptors; /* of this process and of each child */
  uid_t uid;
  gid_t gid;
  bool stopping;
  bool finished;
  int exit_code;
};

/* A listener's limit is shared out exactly; there are no more workers than shares. */
static uint32_t sessions_of(const struct daemon *d, unsigned index)
{
  uint32_t all = d->config->limits.connections_per_listener;
  return all / d->workers + (index < all % d->workers);
}

static void send_worker_settings(const struct daemon *d, struct child *worker)
{
  const struct config_limits *limits = &d->config->limits;
  struct msg_worker_settings settings = {
    .type = MSG_WORKER_SETTINGS,
    .credit = WORKER_CREDIT,
    .head_timeout_ms = limits->head_timeout_ms,
    .answer_timeout_ms = limits->dns_timeout_ms + limits->dial_timeout_ms + 2000,
    .tunnel_idle_ms = limits->tunnel_idle_ms,
    .half_open_idle_ms = limits->half_open_idle_ms,
    .buffered_bytes = limits->buffered_bytes,
    .buffered_total_bytes = limits->buffered_total_bytes,
    .sessions_max = sessions_of(d, child_index(worker)),
    .log_level = d->config->log_level,
    .log_json = d->config->log_json,
  };
  child_send(worker, &settings, -1);
  for (size_t i = 0; i < listeners_count(d->listeners); i++) {
    struct msg_listener listener = {.type = MSG_LISTENER, .descriptor = (uint16_t)(CHILD_LISTENER_FD_FIRST + i)};
    child_send(worker, &listener, -1);
  }
}

static void send_resolver_settings(struct daemon *d, struct child *resolver)
{
  struct msg_resolver_settings settings = {
    .type = MSG_RESOLVER_SETTINGS,
    .servers = (uint32_t)d->nameservers.count,
    .timeout_ms = d->config->limits.dns_timeout_ms,
    .log_level = d->config->log_level,
    .log_json = d->config->log_json,
  };
  child_send(resolver, &settings, -1);
  struct msg_hosts_file hosts = {.type = MSG_HOSTS_FILE};
  cleanup_fd int content = -1;
  int read = hosts_file_content(d->config->hosts_file, &content, &hosts.bytes);
  if (read < 0) {
    log_warning("hosts file \"%s\" cannot be read (%s): its names are not known", d->config->hosts_file,
                strerror(-read));
    read = hosts_file_content(NULL, &content, &hosts.bytes);
  }
  if (read == 0)
    child_send(resolver, &hosts, steal_fd(&content));
  egress_resolver_ready(d->egress, resolver);
}

static void child_ready(void *context, struct child *child)
{
  struct daemon *d = context;
  if (child_role(child) == ROLE_WORKER)
    send_worker_settings(d, child);
  else
    send_resolver_settings(d, child);
  if (d->not_ready == 0 || --d->not_ready > 0)
    return;
  daemon_report_started(d->config, d->audit, d->supervisor, d->workers);
  readiness_ready();
}

static const char *child_message(void *context, struct child *child, const union message *message, int *descriptor,
                                 bool descriptor_lost)
{
  struct daemon *d = context;
  if (descriptor_lost)
    log_warning("descriptors ran out: a connection is refused; raise the limit of open files");
  switch (message->type) {
  case MSG_ASK_EGRESS:
    return answer_egress(d->egress, child, &message->ASK_EGRESS, *descriptor);
  case MSG_ABANDON:
    return egress_abandon(d->egress, child, &message->ABANDON);
  case MSG_SESSION_CLOSED:
    return egress_session_closed(d->egress, child, &message->SESSION_CLOSED);
  case MSG_WORKER_REFUSED:
    return egress_worker_refused(d->egress, child, &message->WORKER_REFUSED, *descriptor);
  case MSG_LOOKUP_ANSWER:
    return egress_lookup_answer(d->egress, &message->LOOKUP_ANSWER);
  case MSG_WANT_SOCKET:
    return nameservers_socket(&d->nameservers, child, &message->WANT_SOCKET);
  default:
    return "a message that nobody takes";
  }
}

static void child_down(void *context, struct child *child)
{
  struct daemon *d = context;
  if (child_role(child) == ROLE_WORKER)
    egress_worker_down(d->egress, child);
}

static void all_finished(void *context, int exit_code)
{
  struct daemon *d = context;
  d->finished = true;
  d->exit_code = exit_code;
  event_base_loopbreak(d->base);
}

/* The round that it wakes ends with a commit. */
static void audit_again(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what, (void)argument;
}

static void end_over(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  all_finished(argument, 0);
}

/* Workers cut their tunnels by resets, so that no peer takes what it has for the whole; who takes too long is killed.
 */
static void end_now(struct daemon *d)
{
  static const struct timeval patience = {.tv_sec = END_PATIENCE_S};
  event_del(d->drain_timer);
  event_add(d->end_timer, &patience);
  supervisor_end(d->supervisor);
}

static void drain_over(evutil_socket_t fd, short what, void *argument)
{
  (void)fd, (void)what;
  struct daemon *d = argument;
  log_warning("drain_timeout is over: %zu tunnels are cut", egress_grants(d->egress));
  end_now(d);
}

static void stop_signal(evutil_socket_t number, short what, void *argument)
{
  (void)what;
  struct daemon *d = argument;
  if (d->stopping) {
    log_info("second signal: ending at once, %zu tunnels are cut", egress_grants(d->egress));
    end_now(d);
    return;
  }
  unsigned patience_ms = d->config->limits.drain_timeout_ms;
  log_info("signal %d: no new connections, %zu tunnels may end within %u s", (int)number, egress_grants(d->egress),
           patience_ms / 1000);
  d->stopping = true;
  readiness_stopping();
  struct timeval patience = {.tv_sec = patience_ms / 1000, .tv_usec = (patience_ms % 1000) * 1000};
  event_add(d->drain_timer, &patience);
  listeners_shutdown(d->listeners);
  supervisor_drain(d->supervisor);
}

static void reload_signal(evutil_socket_t number, short what, void *argument)
{
  (void)number, (void)what, (void)argument;
  log_warning("this version reads its configuration at the start only: restart to change it");
}

static void counters_signal(evutil_socket_t number, short what, void *argument)
{
  (void)number, (void)what;
  struct daemon *d = argument;
  daemon_report_counters(d->supervisor, egress_grants(d->egress), egress_asks(d->egress));
}

/* The user that children become. Without root there is only one choice. */
static int find_user(struct daemon *d)
{
  if (geteuid() != 0) {
    d->uid = geteuid();
    d->gid = getegid();
    if (d->config->confinement == CONFINEMENT_BEST_EFFORT)
      return 0;
    log_error("%s: `confinement: required` needs root; start it as root, or say `confinement: best-effort`",
              d->config->path);
    return EXIT_CODE_CONFINEMENT;
  }
  const struct passwd *entry = getpwnam(d->config->user);
  if (!entry) {
    log_error(
      "%s:%u: user \"%s\" does not exist; create it (useradd --system --no-create-home %s) or name another with "
      "`user:`",
      d->config->path, d->config->user_line, d->config->user, d->config->user);
    return EXIT_CODE_CONFIGURATION;
  }
  if (entry->pw_uid == 0 || entry->pw_gid == 0) {
    log_error("%s:%u: user \"%s\" is root or of its group; name another with `user:`", d->config->path,
              d->config->user_line, d->config->user);
    return EXIT_CODE_CONFIGURATION;
  }
  d->uid = entry->pw_uid;
  d->gid = entry->pw_gid;
  return 0;
}

/* 0 or an exit code. */
static int raise_descriptor_limit(struct daemon *d)
{
  struct rlimit limit = {DESCRIPTORS_WANTED, DESCRIPTORS_WANTED};
  struct rlimit now;
  getrlimit(RLIMIT_NOFILE, &now);
  if (now.rlim_max >= DESCRIPTORS_WANTED || setrlimit(RLIMIT_NOFILE, &limit) < 0) {
    limit.rlim_cur = limit.rlim_max = now.rlim_max;
    if (limit.rlim_cur > DESCRIPTORS_WANTED)
      limit.rlim_cur = DESCRIPTORS_WANTED;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
  getrlimit(RLIMIT_NOFILE, &now);
  d->descriptors = (unsigned)now.rlim_cur;
  if (d->descriptors >= 2 * DESCRIPTORS_RESERVED)
    return 0;
  log_error("the limit of open files is %u, and at least %d are needed: raise it (ulimit -n, LimitNOFILE=)",
            d->descriptors, 2 * DESCRIPTORS_RESERVED);
  return EXIT_CODE_RUNTIME;
}

static size_t dials_max(const struct daemon *d)
{
  const size_t least = 16;
  size_t room = d->descriptors - 2 * DESCRIPTORS_RESERVED;
  size_t for_dials = room > least ? room : least;
  return for_dials < d->config->limits.dials_in_flight ? for_dials : d->config->limits.dials_in_flight;
}

static int add_signals(struct daemon *d)
{
  const struct {
    int number;
    event_callback_fn handler;
  } rows[] = {{SIGTERM, stop_signal}, {SIGINT, stop_signal}, {SIGHUP, reload_signal}, {SIGUSR1, counters_signal}};
  signal(SIGPIPE, SIG_IGN);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    d->signals[i] = evsignal_new(d->base, rows[i].number, rows[i].handler, d);
    if (!d->signals[i] || event_add(d->signals[i], NULL) < 0)
      return -ENOMEM;
  }
  d->drain_timer = evtimer_new(d->base, drain_over, d);
  d->end_timer = evtimer_new(d->base, end_over, d);
  d->audit_timer = evtimer_new(d->base, audit_again, d);
  return d->drain_timer && d->end_timer && d->audit_timer ? 0 : -ENOMEM;
}

/* Everything that needs files, names or privileges. 0 or an exit code. */
static int open_all(struct daemon *d)
{
  int code = find_user(d);
  if (code)
    return code;
  code = raise_descriptor_limit(d);
  if (code)
    return code;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  d->workers = d->config->workers ? d->config->workers : cores > 0 ? (unsigned)cores : 1;
  if (d->workers > WORKERS_MAX)
    d->workers = WORKERS_MAX;
  if (d->workers > d->config->limits.connections_per_listener)
    d->workers = d->config->limits.connections_per_listener;
  d->not_ready = d->workers + 1;
  nameservers_read(d->config, &d->nameservers);
  int failed = audit_open(d->config->audit, d->config->limits.audit_fsync_ms, &d->audit);
  if (failed < 0) {
    log_error("%s:%u: audit log \"%s\" cannot be opened: %s", d->config->path, d->config->audit_line, d->config->audit,
              audit_open_hint(failed));
    return EXIT_CODE_RUNTIME;
  }
  if (listeners_open(d->config, &d->listeners) < 0)
    return EXIT_CODE_RUNTIME;
  d->base = event_base_new();
  if (!d->base || add_signals(d) < 0) {
    log_error("the event loop cannot be made: %s", strerror(errno));
    return EXIT_CODE_RUNTIME;
  }
  struct egress_settings egress = {d->base, d->config, d->audit, d->listeners, dials_max(d)};
  d->egress = egress_new(&egress);
  if (!d->egress)
    log_error("memory ran out at the start");
  return d->egress ? 0 : EXIT_CODE_RUNTIME;
}

static int start_children(struct daemon *d)
{
  static const struct child_handler handler = {child_ready, child_message, child_down, all_finished};
  int descriptors[LISTENERS_MAX];
  size_t count = listeners_count(d->listeners);
  for (size_t i = 0; i < count; i++)
    descriptors[i] = listeners_descriptor(d->listeners, i);
  struct supervisor_settings settings = {
    .base = d->base,
    .config = d->config,
    .audit = d->audit,
    .listeners = descriptors,
    .listener_count = count,
    .workers = d->workers,
    .uid = d->uid,
    .gid = d->gid,
    .descriptors_max = d->descriptors,
    .handler = &handler,
    .context = d,
  };
  int failed = supervisor_new(&settings, &d->supervisor);
  if (failed == 0) {
    egress_set_supervisor(d->egress, d->supervisor);
    if (daemon_report_confine(geteuid() == 0) < 0)
      return EXIT_CODE_CONFINEMENT;
    failed = audit_check_reopen(d->audit);
    if (failed < 0)
      log_error("%s:%u: audit log \"%s\" could not be opened anew when it is moved or removed: %s", d->config->path,
                d->config->audit_line, d->config->audit, audit_open_hint(failed));
  }
  if (failed < 0)
    return EXIT_CODE_RUNTIME;
  failed = supervisor_start(d->supervisor);
  if (failed < 0) {
    log_error("children cannot be started: %s", strerror(-failed));
    return failed == -EPERM ? EXIT_CODE_CONFINEMENT : EXIT_CODE_RUNTIME;
  }
  return 0;
}

static void close_all(struct daemon *d)
{
  if (d->supervisor) {
    supervisor_kill(d->supervisor);
    daemon_report_counters(d->supervisor, 0, 0);
    supervisor_free(d->supervisor);
  }
  if (d->egress)
    egress_free(d->egress);
  for (size_t i = 0; i < sizeof d->signals / sizeof *d->signals; i++)
    if (d->signals[i])
      event_free(d->signals[i]);
  if (d->drain_timer)
    event_free(d->drain_timer);
  if (d->end_timer)
    event_free(d->end_timer);
  if (d->audit_timer)
    event_free(d->audit_timer);
  if (d->listeners)
    listeners_close(d->listeners);
  if (d->audit) {
    daemon_report_stopped(d->audit, d->exit_code);
    audit_close(d->audit);
  }
  if (d->base)
    event_base_free(d->base);
}

/* A broken log is tried again without waiting for a client: the first one after a full disk is freed is served. */
static void retry_audit(struct daemon *d)
{
  static const struct timeval pause = {.tv_usec = AUDIT_RETRY_MS * 1000};
  if (audit_is_broken(d->audit) && !event_pending(d->audit_timer, EV_TIMEOUT, NULL))
    event_add(d->audit_timer, &pause);
}

int daemon_run(const struct config *config, int ready_fd)
{
  struct daemon d = {.config = config};
  log_never_wait();
  readiness_setup(ready_fd);
  d.exit_code = open_all(&d);
  if (d.exit_code == 0)
    d.exit_code = start_children(&d);
  if (d.exit_code == 0) {
    while (!d.finished) {
      if (event_base_loop(d.base, EVLOOP_ONCE) < 0)
        break;
      egress_flush(d.egress);
      retry_audit(&d);
    }
  }
  close_all(&d);
  return d.exit_code;
}
