/* How arithmetic and transfers share the time of a loop.
 *
 *   mixed threads=T bytes=B arithmetic=P
 *
 * Sweeps over three arrays of B bytes together, as STREAM's triad does, with multiply-adds of every
 * element between its loads and its store. How many is found here, so that they alone take P
 * percent of the time that the transfers alone take: where both are of the same length it shows
 * best how far one hides behind the other. Three times of the same sweep, per operation:
 *
 *   seconds      arithmetic and transfers
 *   reference    the transfers alone (a = b + c / 2), in turns with the former
 *   arithmetic   the arithmetic alone: the same loop over arrays in the first-level cache
 *
 * One operation is CHUNK elements of every thread; the next one goes on where it ended, so that
 * batches are short however large the arrays are, and an element returns to a cache only after all
 * others. moved = bytes of an operation as STREAM counts them (without the line that a store reads
 * before it is written), work = floating-point operations, both of all threads together. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "arrays.h"
#include "node.h"

enum { CHUNK = 8 * GRAIN /* 12 KiB of three arrays: within any first-level cache */ };
enum { MOST_FOURS = 4096, SAMPLE = 128 /* chunks whose time is looked at */ };
enum { LEAST_TRIES = 9, MOST_TRIES = 64 };

/* What a thread goes over; two lines apart from that of others. */
struct walk {
    double *a, *b, *c;    /* the part of the arrays */
    long chunks, at;      /* in the part; the next one */
    double *x, *y, *z;    /* a chunk each that stays in the first-level cache */
    char pad[2 * LINE - 6 * sizeof(double *) - 2 * sizeof(long)];
};

struct mixed {
    struct arrays arrays;
    struct walk *walks;
    double *small;
    long fours; /* multiply-adds of an element, by fours */
};

static double sweep(struct mixed *mixed, long inner, long fours)
{
    struct arrays *arrays = &mixed->arrays;
#pragma omp parallel num_threads((int)arrays->team.threads)
    {
        struct walk *walk = &mixed->walks[omp_get_thread_num()];
        long at = walk->at;
        team_begin(&arrays->team);
        for (long i = 0; i < inner; i++) {
            long first = at * CHUNK;
            arrays->vectors.mixed(walk->a + first, walk->b + first, walk->c + first, CHUNK, fours);
            at = at + 1 < walk->chunks ? at + 1 : 0;
        }
        team_end(&arrays->team);
        walk->at = at;
    }
    return team_contended_seconds(&arrays->team);
}

static double both_batch(void *state, long inner)
{
    struct mixed *mixed = state;
    return sweep(mixed, inner, mixed->fours);
}

static double transfer_batch(void *state, long inner)
{
    return sweep(state, inner, 0);
}

static double arithmetic_batch(void *state, long inner)
{
    struct mixed *mixed = state;
    struct arrays *arrays = &mixed->arrays;
#pragma omp parallel num_threads((int)arrays->team.threads)
    {
        struct walk *walk = &mixed->walks[omp_get_thread_num()];
        team_begin(&arrays->team);
        for (long i = 0; i < inner; i++)
            arrays->vectors.mixed(walk->x, walk->y, walk->z, CHUNK, mixed->fours);
        team_end(&arrays->team);
    }
    return team_contended_seconds(&arrays->team);
}

/* The least time of an operation in a few batches; infinite if the threads never met. Arrays that
 * fit into a cache are in it only after a pass: as many batches as make two, within limits. */
static double least_seconds(batch_fn work, struct mixed *mixed)
{
    double least = INFINITY;
    long passes = 2 * mixed->walks[0].chunks / SAMPLE;
    long tries = passes < LEAST_TRIES ? LEAST_TRIES : passes > MOST_TRIES ? MOST_TRIES : passes;
    for (long i = 0; i < tries; i++)
        least = fmin(least, work(mixed, SAMPLE)); /* fmin() passes over NAN */
    return least / SAMPLE;
}

/* Chooses the multiply-adds. The first guess is off, because the loop around them costs as well: it
 * is corrected by what it takes. Returns 0, or -1 if the threads never met. */
static int balance(struct mixed *mixed, double share)
{
    double wanted = share * least_seconds(transfer_batch, mixed);
    mixed->fours = 16;
    for (int i = 0; i < 3; i++) {
        double seconds = least_seconds(arithmetic_batch, mixed);
        if (isinf(wanted) || isinf(seconds))
            return -1;
        double fours = round((double)mixed->fours * wanted / seconds);
        mixed->fours = (long)fmax(1, fmin(fours, MOST_FOURS));
    }
    return 0;
}

/* Gives every thread its part and its chunks in the first-level cache, which it touches first. */
static int open_walks(struct mixed *mixed)
{
    struct arrays *arrays = &mixed->arrays;
    enum { APART = 3 * CHUNK + 3 * 2 * LINE }; /* doubles; not all at one offset within a page */
    long threads = arrays->team.threads;
    mixed->walks = aligned_reserve((size_t)threads * sizeof *mixed->walks);
    mixed->small = aligned_reserve((size_t)threads * APART * sizeof *mixed->small);
    if (!mixed->walks || !mixed->small)
        return -1;
#pragma omp parallel num_threads((int)threads)
    {
        long thread = omp_get_thread_num(), first, count;
        double *small = mixed->small + thread * APART;
        arrays_part(arrays, thread, &first, &count);
        for (long i = 0; i < APART; i++)
            small[i] = 1;
        mixed->walks[thread] = (struct walk){
            .a = arrays->a + first,
            .b = arrays->b + first,
            .c = arrays->c + first,
            .chunks = count / CHUNK,
            .x = small,
            .y = small + CHUNK + 2 * LINE,
            .z = small + 2 * (CHUNK + 2 * LINE),
        };
    }
    return 0;
}

/* Of the budget: the arithmetic in the cache is steadier than what is compared with it. */
static const double FOR_ARITHMETIC = 0.25;

static struct plan part_of_budget(const struct plan *plan, double part)
{
    struct plan shorter = *plan;
    shorter.budget *= part;
    return shorter;
}

static struct result run_mixed(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    struct result result = {0};
    struct mixed mixed = {0};
    long bytes = job_integer(job, "bytes", 0), threads = job_integer(job, "threads", 1);
    long chunk = 3 * CHUNK * (long)sizeof(double);
    if (bytes / threads < 2 * chunk)
        return result_absent("%ld bytes are too few for %ld threads of at least %ld bytes each",
                             bytes, threads, 2 * chunk);
    if (arrays_open(&mixed.arrays, job, 3, bytes / 3, &result))
        return result;
    double share = (double)job_integer(job, "arithmetic", 100) / 100;
    if (open_walks(&mixed)) {
        result = result_absent("not enough memory for the parts of %ld threads", threads);
    } else if (balance(&mixed, share)) {
        result = result_absent("no batch with all threads working at the same time");
    } else {
        double elements = (double)CHUNK * (double)threads;
        struct plan first = part_of_budget(plan, FOR_ARITHMETIC);
        struct plan rest = part_of_budget(plan, 1 - FOR_ARITHMETIC);
        result.arithmetic = measure(&first, arithmetic_batch, NULL, &mixed);
        if (result.arithmetic.n)
            result.batches = measure(&rest, both_batch, transfer_batch, &mixed);
        result.moved = 3 * elements * sizeof(double);
        result.work = 2 * elements * (double)(4 * mixed.fours + 1);
    }
    free(mixed.walks);
    free(mixed.small);
    arrays_close(&mixed.arrays);
    return result;
}

static const struct key MIXED_KEYS[] = {
    {"threads", INTEGER, 1, 1, 65536, NULL},
    {"bytes", INTEGER, 1, 1, 1L << 36, NULL},
    {"arithmetic", INTEGER, 1, 1, 10000, NULL},
    {0},
};

const struct job_kind mixed_jobs[] = {
    {"mixed", MIXED_KEYS, NULL, run_mixed},
    {0},
};
