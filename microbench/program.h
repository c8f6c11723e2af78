/* What both programs share: options, the order of events, the end.
 *
 * A program is a description (`struct program`) of which jobs it knows and how its processes speak
 * with each other. Of several processes one, the leader, reads the jobs, prints and writes; all of
 * them do every job. */
#ifndef POPMODEL_PROGRAM_H
#define POPMODEL_PROGRAM_H

#include "jobs.h"
#include "machine_state.h"

enum { MOST_LINES = 256 };

struct options {
    const char *jobs_path, *samples_path;
    long launch;
    struct plan plan;              /* agree and agree_with as the program says */
    double limit;                  /* seconds for the whole launch, INFINITY if none */
    const char *lines[MOST_LINES]; /* job lines given as arguments */
    int line_count;
};

struct program {
    const char *name;    /* "node" or "mpi" */
    const char *example; /* a job line, for the help */
    int has_thread_level;
    const struct job_kind *const *kinds; /* as jobs_parse() takes them */
    /* Job lines to do when none are given; to be freed. */
    char *(*default_jobs)(void *context);
    /* Adds `,"key":value...` to the header; called by the leader only. */
    void (*add_to_header)(struct text *, void *context);
    void *context; /* given to the functions here and to every job's run() */

    /* Several processes; for one alone leader is 1, ranks 1, and the functions are NULL. */
    int leader;
    long ranks;
    long (*agree)(void *context, long value); /* the leader's value, at all */
    /* The leader's text at all: elsewhere `text` is NULL. The result is to be freed. */
    char *(*share)(void *context, char *text);
    /* Sum over the processes on the leader's node, called by all. */
    struct usage (*usage)(void *context);
    /* Processors that those may run on, called by all; to be freed. */
    char *(*cpus)(void *context);
};

/* Reads the options. Returns -1 to go on, else the status to exit with: 0 after --help, 2 after a
 * message about a wrong option (both only where `program->leader` is set, so that many ranks do not
 * all print). */
int options_read(struct options *, const struct program *, int argc, char **argv);

/* Does everything; returns the exit status. */
int program_run(const struct program *, struct options *);

#endif
