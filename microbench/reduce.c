/* Adding up two vectors as a reduction does it: gamma in the formulas of the collectives.
 *
 *   reduce_local bytes=B      MPI_Reduce_local of B bytes of doubles with MPI_SUM on one rank
 *
 * Zeros are added, so that the sum stays finite and normal however often that is repeated. */
#include <stdlib.h>

#include "clock.h"
#include "mpi_jobs.h"
#include "party.h"

struct sum {
    int count;
    double *in;
    double *inout;
};

static double sum_batch(void *state, long inner)
{
    const struct sum *s = state;
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        MPI_Reduce_local(s->in, s->inout, s->count, MPI_DOUBLE, MPI_SUM);
    return clock_now() - start;
}

static struct result reduce_local(const struct party *party, const struct job *job)
{
    size_t bytes = (size_t)job_integer(job, "bytes", 0);
    struct sum s = {.count = (int)(bytes / sizeof(double))};
    s.in = touched(bytes);
    s.inout = touched(bytes);
    struct result result = {.batches = measure(&party->plan, sum_batch, NULL, &s)};
    free(s.in);
    free(s.inout);
    return result;
}

static struct result run_reduce_local(const struct job *job, const struct plan *plan, void *launch)
{
    return on_first(launch, job, plan, 1, 2 * job_integer(job, "bytes", 0), reduce_local);
}

static const char *check(const struct job *job)
{
    return job_integer(job, "bytes", 0) % (long)sizeof(double) ? "bytes= must be a multiple of 8"
                                                               : NULL;
}

static const struct key KEYS[] = {BYTES_KEY, {0}};

const struct job_kind reduce_jobs[] = {
    {"reduce_local", KEYS, check, run_reduce_local},
    {0},
};
