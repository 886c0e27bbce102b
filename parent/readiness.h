/* Telling whoever started us: a newline on a descriptor, and systemd's notification socket. */
#pragma once

/* Opens what the notifications need before the filter. `ready_fd` -1: none. */
void readiness_setup(int ready_fd);

/* All listeners accept. */
void readiness_ready(void);

/* Shutting down. */
void readiness_stopping(void);
