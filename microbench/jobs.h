/* Job lines: what to measure, in words.
 *
 *     NAME key=value key=value        # comment
 *
 * A table of `struct job_kind` says which jobs a program knows, which keys each admits and what
 * does the work. Everything is checked before anything is measured. */
#ifndef POPMODEL_JOBS_H
#define POPMODEL_JOBS_H

#include "batch.h"
#include "text.h"

struct job;

/* What a job gave: batches, or the reason why there are none. What is 0 (or empty) is left out of
 * the sample. */
struct result {
    struct batches batches;
    struct batches arithmetic; /* the arithmetic of an operation alone */
    double moved;     /* bytes that one operation moves */
    double work;      /* what one operation holds: flop, accesses, cycles */
    double compute;   /* seconds of computation put between post and wait */
    long nodes;       /* nodes that took part */
    char absent[200]; /* why it cannot be measured here */
};

struct result result_absent(const char *reason, ...) LIKE_PRINTF(1, 2);

enum key_type { INTEGER, SECONDS, WORD };

struct key {
    const char *name;
    enum key_type type;
    int required;
    long least, most;         /* of an INTEGER (and least of SECONDS) */
    const char *const *words; /* admitted for a WORD, ends with NULL */
};

struct job_kind {
    const char *name;
    const struct key *keys; /* ends with a NULL name; NULL if there are none */
    /* What the table cannot say about keys that belong together: a message, or NULL if all is well.
     * May be NULL. */
    const char *(*check)(const struct job *);
    struct result (*run)(const struct job *, const struct plan *, void *context);
};

enum { MOST_PARAMETERS = 8 };

struct parameter {
    const char *key, *value; /* inside the job's own copy of its line */
};

struct job {
    const struct job_kind *kind;
    struct parameter parameters[MOST_PARAMETERS];
    int count;
    char *line;
};

struct job_list {
    struct job *jobs;
    long count;
};

/* A parameter's value, `fallback` where it was not given. */
const char *job_text(const struct job *, const char *key, const char *fallback);
long job_integer(const struct job *, const char *key, long fallback);
double job_seconds(const struct job *, const char *key, double fallback);

/* Adds the jobs in `lines` to the list. `kinds` ends with NULL and points at tables that end with a
 * NULL name; `source` names the text in messages. Returns 0, or -1 with one line in `error`. */
int jobs_parse(struct job_list *, const char *lines, const char *source,
               const struct job_kind *const *kinds, struct text *error);

void jobs_free(struct job_list *);

#endif
