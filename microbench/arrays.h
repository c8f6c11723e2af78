/* Large arrays that the threads of a team share out: what the jobs of memory and of loops run over.
 *
 * Every thread has an equal, contiguous part and touches it first, so that on a node with several
 * memory domains every part lies with its thread (bind the threads: OMP_PLACES=cores
 * OMP_PROC_BIND=close). A job with the keys `on` and `data` states instead in which domain the
 * threads run, and from which the arrays are touched. */
#ifndef POPMODEL_ARRAYS_H
#define POPMODEL_ARRAYS_H

#include "cpus.h"
#include "team.h"
#include "vectors.h"

/* Processors that threads run on, and those from which memory is touched; empty: left to OpenMP. */
struct places {
    struct cpus on, data;
};

/* Reads the keys `on` and `data` of a job. Returns 0, or -1 with the reason in `absent`. */
int places_open(struct places *, const struct job *, struct result *absent);
void places_close(struct places *);

/* Binds the calling thread to one of some processors, the same for the same number; does nothing if
 * there are none. */
struct pinned pin_among(const struct cpus *, long number);

struct arrays {
    struct team team;
    struct vectors vectors;
    struct places places;
    void *blocks[3];
    double *a, *b, *c; /* as many as the job uses */
    long doubles;      /* of each */
};

/* So many arrays (1 to 3) of `bytes` each, touched, and the team and places of a job. Returns 0, or
 * -1 with the reason in `absent` and nothing to close. */
int arrays_open(struct arrays *, const struct job *, int count, long bytes, struct result *absent);
void arrays_close(struct arrays *);

/* The part of a thread, in whole grains (GRAIN doubles). */
void arrays_part(const struct arrays *, long thread, long *first, long *count);

/* Whether so many bytes may be used; the reason in `absent` if not. */
int fits_memory(double bytes, struct result *absent);

/* Keeps the kernel from moving the pages of a block towards the threads that use them. */
void stay_where_touched(void *block, size_t bytes);

#endif
