/* The samples file: one JSON object per line, written as soon as it is known. */
#ifndef POPMODEL_SAMPLES_H
#define POPMODEL_SAMPLES_H

#include "jobs.h"
#include "machine_state.h"

struct samples {
    int file;
    const char *path; /* for messages */
};

/* Opens for writing, NULL or "-" for standard output. Returns 0, or -1 with one line in `error`. */
int samples_open(struct samples *, const char *path, struct text *error);

/* Adds a newline and writes the line as a whole, so that a program killed later leaves it behind.
 * Returns 0, or -1 with one line in `error`. Empties `line`. */
int samples_write(struct samples *, struct text *line, struct text *error);

int samples_close(struct samples *, struct text *error);

/* The line of a job that was done. `state` may be NULL. */
void sample_line(struct text *, const struct job *, const struct result *, const struct state *,
                 double at, double wall);

/* The common part of the header, without the closing brace: {"schema":...,"limits":{...} */
void header_line(struct text *, const char *program, long launch, long ranks, const struct plan *);

/* Processors that this process may run on, as in "0-3,8"; to be freed. */
char *allowed_cpus(void);

#endif
