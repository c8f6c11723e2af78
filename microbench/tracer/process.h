/* A process that records: from when there is something to record to its end. */
#ifndef POPMODEL_PROCESS_H
#define POPMODEL_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "state.h"

struct process {
    char *stem; /* DIRECTORY/HOST.PID, of all its files */
    char *meta; /* its meta file */
    char host[256];
    uint64_t most, taken; /* bytes of all its threads' files; `most` is 0 without a limit */
    bool summing;         /* sums are kept in place of records (summary.h) */
};
extern struct process process;

/* Whether the environment names a directory for records. */
bool process_wanted(void);

/* Creates the files of this process, once. True if it records: it does not where the environment
 * names no directory, in forked children, and after the end. Call it where something begins that is
 * worth a trace: MPI_Init, a parallel region, a user's region. */
bool process_start(void);

/* Ends the recording: cuts the files to their length and says why in the meta file. */
void process_end(const char *reason);

/* window.c: nothing is recorded before the end of MPI_Init where a window of time is asked for. */
void window_before_init(void);
void window_after_init(void);

/* Shares the room that there is for records (POPMODEL_TRACE_MAX_SIZE) with the other processes. */
void process_share(int processes);

/* Called at the start, before any record; set by constructors of those that need it. */
typedef void hook(void);
void at_start(hook *);
void run_start_hooks(void);

/* buffer.c: the first window of a thread's file, and the end of the file. */
void buffer_open(struct thread *);
void buffer_close(struct thread *);

/* Creates a thread's file and maps its begin; NULL if that fails. */
void *map_first(struct thread *, size_t size);

/* Of the threads that record. */
void process_each(void (*)(struct thread *));
bool process_has_thread(pid_t id);

/* Held by those who change which files there are, or where a thread's window is. */
void process_lock(void);
bool process_try_lock(void); /* within a second */
bool process_is_free(void);  /* whether nobody holds it now */
void process_unlock(void);

#endif
