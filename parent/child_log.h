/* What a child has to say to people: it comes as packets, and the parent writes the lines. Children so hold no
   terminal, cannot block on a log that nobody reads, and cannot speak in another's name. Trust: the text is hostile; it
   is escaped, bounded, and never looked into. */
#pragma once

#include <event2/event.h>

struct child_log;

/* Makes the socket and watches it. `name` is shown in each line and is the caller's, as *ret_child is (the descriptor
   for the child, to be closed once it is spawned). 0 or -errno. */
int child_log_open(struct event_base *base, const char *name, struct child_log **ret, int *ret_child);

/* Writes what the child still had to say, closes and frees. NULL is allowed. */
void child_log_close(struct child_log *log);
