/* The tables of jobs of popmodel-node, one per subject. Each ends with an empty entry. */
#ifndef POPMODEL_NODE_H
#define POPMODEL_NODE_H

#include "jobs.h"

extern const struct job_kind core_jobs[];
extern const struct job_kind memory_jobs[];
extern const struct job_kind mixed_jobs[];
extern const struct job_kind construct_jobs[];
extern const struct job_kind sharing_jobs[];
extern const struct job_kind noise_jobs[];
extern const struct job_kind row_jobs[];

#endif
