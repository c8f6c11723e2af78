/* The tables of jobs of popmodel-mpi, one per subject. Each ends with an empty entry. All jobs
 * take a struct launch (party.h) as their context and are called by all ranks. */
#ifndef POPMODEL_MPI_JOBS_H
#define POPMODEL_MPI_JOBS_H

#include <limits.h>

#include "jobs.h"
#include "layout.h"

extern const struct job_kind point_to_point_jobs[];
extern const struct job_kind collective_jobs[];
extern const struct job_kind overlap_jobs[];
extern const struct job_kind threaded_jobs[];
extern const struct job_kind reduce_jobs[];

/* Keys that many jobs have. */
#define BYTES_KEY {"bytes", INTEGER, 1, 0, INT_MAX, NULL}
#define TIER_KEY {"tier", WORD, 1, 0, 0, TIERS}

#endif
