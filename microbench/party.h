/* The ranks that take part in a job, and what the others do meanwhile.
 *
 * Every rank reads the same job and the same layout and so comes to the same choice without
 * asking; a job that has no ranks to run on is absent on all of them at once. Only the chosen
 * ranks call the job's function, on a communicator of their own. The others sleep and look now
 * and then: a rank that waits in MPI spins, takes the processor and the memory's bandwidth from
 * those who measure, and keeps a core's clock down. */
#ifndef POPMODEL_PARTY_H
#define POPMODEL_PARTY_H

#include <mpi.h>
#include <stddef.h>

#include "jobs.h"
#include "layout.h"

/* The launch as every rank knows it: the context of all jobs. */
struct launch {
    int rank, ranks;
    struct place *at; /* by rank */
    char **hosts;     /* by rank */
    char **cpus;      /* by rank: processors it may use, as in "0-3,8" */
    int thread_level; /* what MPI provides */
    MPI_Comm node;    /* the ranks on this rank's node */
};

/* Those who run a job. Of a job between pairs, ranks 2 i and 2 i + 1 of the communicator are a
 * pair. */
struct party {
    MPI_Comm comm;
    int rank, size;
    struct plan plan; /* agreed over comm: rank 0 of it decides */
};

/* What a job does on each of its ranks; the result counts on rank 0 of the party. */
typedef struct result (*party_fn)(const struct party *, const struct job *);

/* Runs a job on the pairs that tier= and pairs= (1 if not given) name. To be called by all ranks;
 * the result is complete on rank 0 of the launch. `bytes` is what the job's buffers take on one
 * rank: above MEMORY_PER_RANK it is absent, and so it is if threads= is given and not each of the
 * threads has a processor. */
struct result on_pairs(const struct launch *, const struct job *, const struct plan *, long bytes,
                       party_fn);

/* The same on the first `count` ranks. */
struct result on_first(const struct launch *, const struct job *, const struct plan *, int count,
                       long bytes, party_fn);

/* No job takes more memory than this on one rank. */
#define MEMORY_PER_RANK (256L << 20)

/* Memory that starts on a page and has been touched by the caller. Without memory the launch ends
 * with a message. */
void *touched(size_t bytes);

/* Sleeps, so that another rank may have the processor. */
void sleep_for(double seconds);

#endif
