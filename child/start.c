#include "child/start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "shared/channel.h"
#include "shared/limits.h"
#include "shared/log.h"

#define EXIT_CONFINEMENT 4
#define DECIMAL 10

/* parent/spawn.c writes exactly these, in this order, one space between. */
enum field { BEST_EFFORT, NAMESPACED, UID, GID, DESCRIPTORS, FIELD_COUNT };

static const struct {
  const char *name;
  unsigned long most;
} fields[FIELD_COUNT] = {
  [BEST_EFFORT] = {"best-effort=", 1}, [NAMESPACED] = {"namespaced=", 1},
  [UID] = {"uid=", UINT32_MAX - 1}, /* the largest means "none" to the kernel */
  [GID] = {"gid=", UINT32_MAX - 1},    [DESCRIPTORS] = {"descriptors=", CHILD_DESCRIPTORS_MAX},
};

/* Digits only: strtoul alone would take signs and blanks. */
static bool read_number(const char **at, unsigned long most, unsigned long *ret)
{
  if (**at < '0' || **at > '9')
    return false;
  char *end;
  errno = 0;
  *ret = strtoul(*at, &end, DECIMAL);
  *at = end;
  return errno == 0 && *ret <= most;
}

static bool read_options(const char *text, enum role role, struct confine_options *ret)
{
  unsigned long values[FIELD_COUNT];
  for (size_t i = 0; text && i < FIELD_COUNT; i++) {
    size_t length = strlen(fields[i].name);
    if (strncmp(text, fields[i].name, length) != 0)
      return false;
    text += length;
    if (!read_number(&text, fields[i].most, &values[i]))
      return false;
    if (*text != (i + 1 < FIELD_COUNT ? ' ' : '\0'))
      return false;
    text++;
  }
  if (!text)
    return false;
  *ret = (struct confine_options){
    .role = role,
    .best_effort = values[BEST_EFFORT] == 1,
    .namespaced = values[NAMESPACED] == 1,
    .uid = (uid_t)values[UID],
    .gid = (gid_t)values[GID],
    .descriptors = (unsigned)values[DESCRIPTORS],
  };
  return true;
}

static void end(void)
{
  _exit(EXIT_CONFINEMENT);
}

/* The parent gives its children a socket for their lines; whoever starts one by hand may have a terminal there. */
static void find_log(void)
{
  int type;
  socklen_t size = sizeof type;
  if (getsockopt(STDERR_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM)
    log_setup_packets();
}

void child_start(enum role role)
{
  find_log();
  struct confine_options options;
  if (!read_options(getenv("SALLYPORT_CONFINE"), role, &options)) {
    log_error("this program is started by sallyport, not by hand");
    end();
  }
  /* The first time stamp would look for a file of the zone. */
  tzset();
  struct confine_result result;
  if (confine_self(&options, &result) < 0) {
    log_error("confinement failed at \"%s\": %s", confinement_step_name(result.failed), result.what);
    end();
  }
  struct msg_ready ready = {.type = MSG_READY, .steps_done = result.done, .steps_waived = result.waived};
  int failed = channel_send(CHILD_CHANNEL_FD, &ready, -1);
  if (failed < 0) {
    log_error("the parent cannot be told: %s", strerror(-failed));
    end();
  }
}
