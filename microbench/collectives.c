/* Collective operations by size and number of ranks.
 *
 *   collective op=OP bytes=B ranks=K
 *        on the first K ranks, rank 0 being the root; OP is barrier (which has no bytes), bcast,
 *        reduce, allreduce, allgather, gather, scatter, alltoall, reduce_scatter or scan
 *
 * Sizes are those of the model and of the literature: bytes per rank; of alltoall, for each pair
 * of ranks; of reduce_scatter, the whole vector that is reduced. Reductions add up doubles
 * (floats where B is no multiple of 8).
 *
 * An operation's time runs from when all ranks are ready until the last one is through. Where
 * every rank needs something of every other, calls can follow on each other: no rank gets ahead
 * of another by more than one call. In the other operations some ranks only give, would run
 * ahead, and many calls would overlap: that measures throughput. There a barrier comes behind
 * each call, and what as many barriers take by themselves, right after, is taken off. Timing each
 * call alone behind a barrier would add how far apart the ranks leave the barrier, which is as long
 * as a short message. The longest time of the ranks, found when all is over, is the batch's. */
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "clock.h"
#include "mpi_jobs.h"
#include "party.h"

struct call {
    MPI_Comm comm;
    int count; /* elements or bytes per rank */
    MPI_Datatype type;
    void *out;
    void *in;
    int *counts; /* of reduce_scatter, by rank */
    void (*operation)(const struct call *);
};

static void do_barrier(const struct call *c) { MPI_Barrier(c->comm); }

static void do_bcast(const struct call *c) { MPI_Bcast(c->out, c->count, c->type, 0, c->comm); }

static void do_reduce(const struct call *c)
{
    MPI_Reduce(c->out, c->in, c->count, c->type, MPI_SUM, 0, c->comm);
}

static void do_allreduce(const struct call *c)
{
    MPI_Allreduce(c->out, c->in, c->count, c->type, MPI_SUM, c->comm);
}

static void do_allgather(const struct call *c)
{
    MPI_Allgather(c->out, c->count, c->type, c->in, c->count, c->type, c->comm);
}

static void do_gather(const struct call *c)
{
    MPI_Gather(c->out, c->count, c->type, c->in, c->count, c->type, 0, c->comm);
}

static void do_scatter(const struct call *c)
{
    MPI_Scatter(c->out, c->count, c->type, c->in, c->count, c->type, 0, c->comm);
}

static void do_alltoall(const struct call *c)
{
    MPI_Alltoall(c->out, c->count, c->type, c->in, c->count, c->type, c->comm);
}

static void do_reduce_scatter(const struct call *c)
{
    MPI_Reduce_scatter(c->out, c->in, c->counts, c->type, MPI_SUM, c->comm);
}

static void do_scan(const struct call *c)
{
    MPI_Scan(c->out, c->in, c->count, c->type, MPI_SUM, c->comm);
}

/* Buffers in units of the size in bytes: on one rank, 1, or as many as there are ranks. */
enum extent { NOTHING, ONCE, BY_RANKS };

static const struct kind {
    const char *name;
    void (*operation)(const struct call *);
    enum extent out;
    enum extent in;
    int reduces;      /* adds up numbers, where the others move bytes */
    int synchronises; /* no rank is through before every rank has come */
} kinds[] = {
    {"barrier", do_barrier, NOTHING, NOTHING, 0, 1},
    {"bcast", do_bcast, ONCE, NOTHING, 0, 0},
    {"reduce", do_reduce, ONCE, ONCE, 1, 0},
    {"allreduce", do_allreduce, ONCE, ONCE, 1, 1},
    {"allgather", do_allgather, ONCE, BY_RANKS, 0, 1},
    {"gather", do_gather, ONCE, BY_RANKS, 0, 0},
    {"scatter", do_scatter, BY_RANKS, ONCE, 0, 0},
    {"alltoall", do_alltoall, BY_RANKS, BY_RANKS, 0, 1},
    {"reduce_scatter", do_reduce_scatter, ONCE, ONCE, 1, 1},
    {"scan", do_scan, ONCE, ONCE, 1, 0},
};

/* Their names in the same order, as the job's key admits them. */
static const char *const OPERATIONS[] = {"barrier",   "bcast",  "reduce",  "allreduce",
                                         "allgather", "gather", "scatter", "alltoall",
                                         "reduce_scatter", "scan", NULL};

static const struct kind *kind_of(const struct job *job)
{
    const char *name = job_text(job, "op", "barrier");
    const struct kind *kind = kinds;
    while (strcmp(kind->name, name) != 0) /* checked: it is one of them */
        kind++;
    return kind;
}

static long extent_bytes(enum extent extent, long bytes, int ranks)
{
    return extent == NOTHING ? 0 : extent == ONCE ? bytes : bytes * ranks;
}

static double largest(const struct call *c, double seconds)
{
    double most;
    MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, c->comm);
    return most;
}

static double back_to_back(void *state, long inner)
{
    const struct call *c = state;
    MPI_Barrier(c->comm);
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        c->operation(c);
    return largest(c, clock_now() - start);
}

static double one_by_one(void *state, long inner)
{
    const struct call *c = state;
    MPI_Barrier(c->comm);
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
        c->operation(c);
        MPI_Barrier(c->comm);
    }
    double both = clock_now() - start;
    start = clock_now();
    for (long i = 0; i < inner; i++)
        MPI_Barrier(c->comm);
    return largest(c, both) - largest(c, clock_now() - start);
}

static struct result collective(const struct party *party, const struct job *job)
{
    const struct kind *kind = kind_of(job);
    long bytes = job_integer(job, "bytes", 0);
    struct call c = {.comm = party->comm, .operation = kind->operation};
    long element = !kind->reduces ? 1 : bytes % 8 == 0 ? 8 : 4;
    c.type = element == 8 ? MPI_DOUBLE : element == 4 ? MPI_FLOAT : MPI_BYTE;
    c.count = (int)(bytes / element);
    /* Zeros: their sums stay finite and normal however often they are added. */
    c.out = touched((size_t)extent_bytes(kind->out, bytes, party->size));
    c.in = touched((size_t)extent_bytes(kind->in, bytes, party->size));
    c.counts = touched((size_t)party->size * sizeof *c.counts);
    for (int r = 0; r < party->size; r++)
        c.counts[r] = c.count / party->size + (r < c.count % party->size);
    batch_fn batch = kind->synchronises ? back_to_back : one_by_one;
    struct result result = {.batches = measure(&party->plan, batch, NULL, &c)};
    free(c.out);
    free(c.in);
    free(c.counts);
    return result;
}

static struct result run_collective(const struct job *job, const struct plan *plan, void *context)
{
    struct launch *launch = context;
    const struct kind *kind = kind_of(job);
    int ranks = (int)job_integer(job, "ranks", 1);
    long bytes = job_integer(job, "bytes", 0);
    long needed = extent_bytes(kind->out, bytes, ranks) + extent_bytes(kind->in, bytes, ranks);
    struct result result = on_first(launch, job, plan, ranks, needed, collective);
    if (!result.absent[0])
        result.nodes = count_nodes(launch->at, ranks);
    return result;
}

static const char *check(const struct job *job)
{
    const struct kind *kind = kind_of(job);
    if (kind->operation != do_barrier && !job_text(job, "bytes", NULL))
        return "this operation needs bytes=";
    if (kind->reduces && job_integer(job, "bytes", 0) % (long)sizeof(float) != 0)
        return "bytes= of a reduction must be a multiple of 4";
    return NULL;
}

static const struct key KEYS[] = {{"op", WORD, 1, 0, 0, OPERATIONS},
                                  {"bytes", INTEGER, 0, 0, INT_MAX, NULL},
                                  {"ranks", INTEGER, 1, 1, 1000000, NULL},
                                  {0}};

const struct job_kind collective_jobs[] = {
    {"collective", KEYS, check, run_collective},
    {0},
};
