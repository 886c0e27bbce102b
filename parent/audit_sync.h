/* Durability in a thread of its own: fdatasync may take long, and answers do not wait for it. */
#pragma once

struct audit_sync;

/* Starts the thread (no capabilities, signals blocked). 0 or -errno. */
int audit_sync_start(unsigned interval_ms, struct audit_sync **ret);

/* The file has new bytes. `fd` is the caller's and stays open until audit_sync_forget or the next mark of another. */
void audit_sync_mark(struct audit_sync *sync, int fd);

/* Waits until the thread has let go of `fd`, so that the caller may close it. */
void audit_sync_forget(struct audit_sync *sync);

/* 0, or the errno of the last fdatasync that failed; a later success clears it. */
int audit_sync_error(const struct audit_sync *sync);

/* One last fdatasync, then the thread ends. Frees. */
void audit_sync_stop(struct audit_sync *sync);
