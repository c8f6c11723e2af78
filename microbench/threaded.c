/* Messages of several threads at once.
 *
 *   threaded bytes=B threads=M communicator=own|shared tier=T
 *
 * M threads of each of two ranks play ping-pong with their counterparts at the same time: one
 * operation is one message as a thread sees it, half of a round trip, to be compared with
 * ping_pong under the same thread level. communicator=own gives each pair of threads a
 * communicator, which lets a library keep them apart; communicator=shared tells them apart by the
 * tag only. The slowest thread counts. Needs MPI_THREAD_MULTIPLE, and a processor for each of the
 * threads: where they take turns on one, how long the kernel lets each of them wait in vain is
 * measured and nothing else. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "mpi_jobs.h"
#include "party.h"

struct threads {
    MPI_Comm comm;
    int rank;
    int partner;
    int bytes;
    int number;
    MPI_Comm *of; /* communicator of each thread */
    char **out;
    char **in;
};

static void play(const struct threads *t, int thread, long inner)
{
    for (long i = 0; i < inner; i++) {
        if (t->rank == 0)
            MPI_Send(t->out[thread], t->bytes, MPI_BYTE, t->partner, thread, t->of[thread]);
        MPI_Recv(t->in[thread], t->bytes, MPI_BYTE, t->partner, thread, t->of[thread],
                 MPI_STATUS_IGNORE);
        if (t->rank != 0)
            MPI_Send(t->out[thread], t->bytes, MPI_BYTE, t->partner, thread, t->of[thread]);
    }
}

/* One operation is one message of every thread: half of a round trip. */
static double threads_batch(void *state, long inner)
{
    const struct threads *t = state;
    double slowest = 0;
#pragma omp parallel num_threads(t->number) reduction(max : slowest)
    {
        int thread = omp_get_thread_num();
#pragma omp master
        MPI_Barrier(t->comm);
#pragma omp barrier
        double start = clock_now();
        play(t, thread, inner);
        slowest = clock_now() - start;
    }
    return slowest / 2;
}

/* Fewest threads that OpenMP grants on a rank when asked for so many. */
static int granted(const struct party *party, int number)
{
    int got = 0;
#pragma omp parallel num_threads(number)
    {
#pragma omp single
        got = omp_get_num_threads();
    }
    MPI_Allreduce(MPI_IN_PLACE, &got, 1, MPI_INT, MPI_MIN, party->comm);
    return got;
}

static struct result threaded(const struct party *party, const struct job *job)
{
    struct threads t = {.comm = party->comm, .rank = party->rank, .partner = party->rank ^ 1};
    t.bytes = (int)job_integer(job, "bytes", 0);
    t.number = (int)job_integer(job, "threads", 1);
    int got = granted(party, t.number);
    if (got < t.number)
        return result_absent("%d threads requested, the OpenMP runtime provides %d", t.number, got);

    int own = strcmp(job_text(job, "communicator", "shared"), "own") == 0;
    size_t n = (size_t)t.number;
    t.of = touched(n * sizeof *t.of);
    t.out = touched(n * sizeof *t.out);
    t.in = touched(n * sizeof *t.in);
    for (size_t i = 0; i < n; i++) {
        t.of[i] = t.comm;
        if (own)
            MPI_Comm_dup(t.comm, &t.of[i]);
    }
    /* Each thread touches its own buffers, so that they lie in its own domain of memory. */
#pragma omp parallel num_threads(t.number)
    {
        int thread = omp_get_thread_num();
        t.out[thread] = touched((size_t)t.bytes);
        t.in[thread] = touched((size_t)t.bytes);
    }
    struct result result = {.batches = measure(&party->plan, threads_batch, NULL, &t)};
    for (size_t i = 0; i < n; i++) {
        if (own)
            MPI_Comm_free(&t.of[i]);
        free(t.out[i]);
        free(t.in[i]);
    }
    free(t.of);
    free(t.out);
    free(t.in);
    return result;
}

static struct result run_threaded(const struct job *job, const struct plan *plan, void *context)
{
    struct launch *launch = context;
    if (launch->thread_level < MPI_THREAD_MULTIPLE)
        return result_absent("needs MPI_THREAD_MULTIPLE: start with --thread-level multiple and an "
                             "MPI that provides it");
    long bytes = 2 * job_integer(job, "bytes", 0) * job_integer(job, "threads", 1);
    return on_pairs(launch, job, plan, bytes, threaded);
}

static const char *const COMMUNICATORS[] = {"own", "shared", NULL};

static const struct key KEYS[] = {BYTES_KEY,
                                  {"threads", INTEGER, 1, 1, 4096, NULL},
                                  {"communicator", WORD, 1, 0, 0, COMMUNICATORS},
                                  TIER_KEY,
                                  {0}};

const struct job_kind threaded_jobs[] = {
    {"threaded", KEYS, NULL, run_threaded},
    {0},
};
