/* Batches of OpenMP's constructs: a construct around delay(DELAY), `inner` times. */
#ifndef POPMODEL_OPENMP_CONSTRUCTS_H
#define POPMODEL_OPENMP_CONSTRUCTS_H

#include "batch.h"
#include "team.h"

enum { DELAY = 75 }; /* steps: 300 cycles, 0.1 us at 3 GHz */
enum { SECTIONS = 4 }; /* of `sections` */

#define QUOTED(text) #text

/* What the batches get as `state`. */
struct setting {
    struct team team;
    long doubles;           /* of the private array */
    long chunk;             /* 0: none given */
    long iterations, delay; /* of a scheduled loop, and the steps of each */
};

/* Regions, passages that all threads crowd at, tasks. */
double parallel(void *state, long inner);
double parallel_for(void *state, long inner);
double reduction(void *state, long inner);
double for_(void *state, long inner);
double barrier(void *state, long inner);
double single(void *state, long inner);
double master(void *state, long inner);
double sections(void *state, long inner);
double critical(void *state, long inner);
double lock(void *state, long inner);
double atomic(void *state, long inner);
double ordered(void *state, long inner);
double task(void *state, long inner);
double taskwait(void *state, long inner);

/* Arrays of the threads' own, setting->doubles long. */
double private_(void *state, long inner);
double firstprivate(void *state, long inner);
double lastprivate(void *state, long inner);

/* copyprivate, copyin and threadprivate, by name; NULL if an array of that size is not compiled. */
batch_fn with_fixed_array(const char *name, long doubles);

#endif
