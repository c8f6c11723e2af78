/* Overlap of communication with computation.
 *
 *   overlap bytes=B tier=T progress=0|1
 *
 * Two ranks post a receive and a send to each other, compute for as long as the exchange takes by
 * itself, and wait. "seconds" is the whole, "reference" the exchange alone, measured in turns
 * with the whole so that both see the same machine, "compute" the computation alone. With full
 * overlap the whole takes as long as the longer of the two; without, as long as both together.
 * With progress=1 the computation calls MPI_Testall now and then, as programs do where the
 * library makes no progress by itself. */
#include <stdlib.h>

#include "clock.h"
#include "delay.h"
#include "mpi_jobs.h"
#include "party.h"

/* Programs that help progress along call MPI about this often: a call takes a hundredth of it. */
static const double BETWEEN_CALLS = 10e-6;
enum { LEAST_CALLS = 4 };

struct exchange {
    MPI_Comm comm;
    int rank;
    int partner;
    int bytes;
    char *out;
    char *in;
    long steps;  /* of the computation, in one slice */
    long slices; /* of the computation; MPI is called between them */
};

static void post(const struct exchange *e, MPI_Request requests[2])
{
    MPI_Irecv(e->in, e->bytes, MPI_BYTE, e->partner, 0, e->comm, &requests[0]);
    MPI_Isend(e->out, e->bytes, MPI_BYTE, e->partner, 0, e->comm, &requests[1]);
}

static double communication_batch(void *state, long inner)
{
    const struct exchange *e = state;
    MPI_Request requests[2];
    MPI_Barrier(e->comm);
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
        post(e, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    return clock_now() - start;
}

static double computation_batch(void *state, long inner)
{
    const struct exchange *e = state;
    MPI_Barrier(e->comm);
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
        for (long k = 0; k < e->slices; k++)
            delay(e->steps);
    }
    return clock_now() - start;
}

static double whole_batch(void *state, long inner)
{
    const struct exchange *e = state;
    MPI_Request requests[2];
    MPI_Barrier(e->comm);
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
        post(e, requests);
        for (long k = 0; k < e->slices; k++) {
            if (k > 0) {
                int done;
                MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
            }
            delay(e->steps);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    return clock_now() - start;
}

/* Seconds of one operation on rank 0, told to both: the median of a few batches. */
static double quick_time(struct exchange *e, batch_fn batch)
{
    enum { TRIALS = 9 };
    static const double ENOUGH = 200e-6;
    double trials[TRIALS], once, half;
    long inner = 1;
    for (;;) {
        once = batch(e, inner);
        MPI_Bcast(&once, 1, MPI_DOUBLE, 0, e->comm);
        if (once >= ENOUGH)
            break;
        inner *= 2;
    }
    for (int i = 0; i < TRIALS; i++)
        trials[i] = batch(e, inner) / (double)inner;
    double median = median_interval(trials, TRIALS, &half);
    MPI_Bcast(&median, 1, MPI_DOUBLE, 0, e->comm);
    return median;
}

static struct result overlap(const struct party *party, const struct job *job)
{
    struct exchange e = {.comm = party->comm, .rank = party->rank, .partner = party->rank ^ 1};
    e.bytes = (int)job_integer(job, "bytes", 0);
    e.out = touched((size_t)e.bytes);
    e.in = touched((size_t)e.bytes);

    double alone = quick_time(&e, communication_batch);
    e.slices = 1;
    e.steps = 1000;
    double step = quick_time(&e, computation_batch) / (double)e.steps;
    long steps = (long)(alone / step) + 1;
    if (job_integer(job, "progress", 0)) {
        long calls = (long)(alone / BETWEEN_CALLS);
        e.slices = 1 + (calls < LEAST_CALLS ? LEAST_CALLS : calls);
    }
    e.steps = (steps + e.slices - 1) / e.slices;

    struct result result = {.compute = quick_time(&e, computation_batch)};
    result.batches = measure(&party->plan, whole_batch, communication_batch, &e);
    free(e.out);
    free(e.in);
    return result;
}

static struct result run_overlap(const struct job *job, const struct plan *plan, void *launch)
{
    return on_pairs(launch, job, plan, 2 * job_integer(job, "bytes", 0), overlap);
}

static const struct key KEYS[] = {
    BYTES_KEY, TIER_KEY, {"progress", INTEGER, 1, 0, 1, NULL}, {0}};

const struct job_kind overlap_jobs[] = {
    {"overlap", KEYS, NULL, run_overlap},
    {0},
};
