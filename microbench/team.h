/* Threads that start together, and the time until the last of them has ended.
 *
 * Every thread reads the clock itself, after a barrier and after its work: the time of a batch runs
 * from the first start to the last end and holds neither the creation of the threads nor the
 * closing barrier. */
#ifndef POPMODEL_TEAM_H
#define POPMODEL_TEAM_H

#include "jobs.h"

enum { LINE = 64 };

struct span {
    double start, end;
    char pad[2 * LINE - 2 * sizeof(double)]; /* two lines: neighbours are prefetched in pairs */
};

struct team {
    long threads;
    struct span *spans;
};

/* Returns 0, or -1 with the reason in `absent`: more threads than processors, or than the runtime
 * gives. */
int team_open(struct team *, long threads, struct result *absent);

/* To be called by every thread of a parallel region with num_threads(team->threads), before and
 * after its work. */
void team_begin(struct team *);
void team_end(struct team *);

double team_seconds(const struct team *);

/* The same, but NAN if the threads started so far apart that they were not in each other's way all
 * the time: for what is measured under contention. */
double team_contended_seconds(const struct team *);

void team_close(struct team *);

/* Size of a cache line; LINE where the system does not tell. */
long line_bytes(void);

/* Memory that starts on a page, for free(); NULL if there is none. */
void *aligned_reserve(size_t bytes);

#endif
