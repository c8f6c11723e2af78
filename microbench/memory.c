/* Bandwidth and latency of caches and memory.
 *
 *   triad threads=T bytes=B   a = b + s c over three arrays of B bytes each, STREAM's triad (J. D.
 *                             McCalpin, IEEE TCCA Newsletter, December 1995). One operation is one
 *                             sweep; moved = 3 B, STREAM's count: the line that a store reads
 *                             before it is written is not in it
 *   load threads=T bytes=B    reads an array of B bytes; moved = B
 *   update threads=T bytes=B  reads it and writes every word where it was, so that lines are written
 *                             back to where they came from; moved = B, once for both
 *   copy threads=T bytes=B    memcpy() of an array of B bytes, what packing and message passing
 *                             use; moved = 2 B
 *   chase bytes=B             goes through B bytes from line to line in a random cycle, each load
 *                             waiting for the one before; one operation is one load
 *   remote_triad threads=T bytes=B on=I data=J
 *   remote_chase bytes=B on=I data=J
 *                             the same by threads that are bound to the cores of memory domain I,
 *                             with arrays that were touched first from domain J; domains count from
 *                             0 among those with processors that this process may use
 *
 * B is the size of the whole array, of which every thread has an equal, contiguous part, and
 * touches it first: on a node with several memory domains every part then lies with its thread
 * (bind the threads: OMP_PLACES=cores OMP_PROC_BIND=close). There is no barrier between sweeps; the
 * time runs from the first start to the last end. Pages are as large as the system makes them for
 * an ordinary allocation, so that the cost of address translation is in the latency of large
 * arrays, as it is in programs. Touching large arrays may take longer than measuring them and is
 * not in the budget. */
#define _POSIX_C_SOURCE 200809L
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "clock.h"
#include "node.h"

#define MOST_BYTES (1L << 36) /* lines are counted with 32 bits */

static double triad(void *state, long inner)
{
    struct arrays *arrays = state;
#pragma omp parallel num_threads((int)arrays->team.threads)
    {
        long at, count;
        arrays_part(arrays, omp_get_thread_num(), &at, &count);
        struct pinned before = pin_among(&arrays->places.on, omp_get_thread_num());
        team_begin(&arrays->team);
        for (long i = 0; i < inner; i++)
            arrays->vectors.triad(arrays->a + at, arrays->b + at, arrays->c + at, 3.0, count);
        team_end(&arrays->team);
        unpin(before);
    }
    return team_contended_seconds(&arrays->team);
}

static double load(void *state, long inner)
{
    struct arrays *arrays = state;
#pragma omp parallel num_threads((int)arrays->team.threads)
    {
        long at, count;
        arrays_part(arrays, omp_get_thread_num(), &at, &count);
        team_begin(&arrays->team);
        arrays->vectors.load(arrays->a + at, count, inner);
        team_end(&arrays->team);
    }
    return team_contended_seconds(&arrays->team);
}

static double update(void *state, long inner)
{
    struct arrays *arrays = state;
#pragma omp parallel num_threads((int)arrays->team.threads)
    {
        long at, count;
        arrays_part(arrays, omp_get_thread_num(), &at, &count);
        team_begin(&arrays->team);
        arrays->vectors.update(arrays->a + at, count, inner);
        team_end(&arrays->team);
    }
    return team_contended_seconds(&arrays->team);
}

static double copy(void *state, long inner)
{
    struct arrays *arrays = state;
#pragma omp parallel num_threads((int)arrays->team.threads)
    {
        long at, count;
        arrays_part(arrays, omp_get_thread_num(), &at, &count);
        team_begin(&arrays->team);
        for (long i = 0; i < inner; i++) {
            memcpy(arrays->a + at, arrays->b + at, (size_t)count * sizeof(double));
            __asm__ volatile("" : : : "memory");
        }
        team_end(&arrays->team);
    }
    return team_contended_seconds(&arrays->team);
}

static struct result run_arrays(const struct job *job, const struct plan *plan, batch_fn batch,
                                int count)
{
    struct result result = {0};
    struct arrays arrays;
    if (arrays_open(&arrays, job, count, job_integer(job, "bytes", 0), &result))
        return result;
    struct plan placed = *plan;
    placed.cpus = arrays.places.on.numbers;
    result.batches = measure(&placed, batch, NULL, &arrays);
    /* load and update go over one array, triad and copy touch all of theirs once */
    result.moved = (double)count * (double)arrays.doubles * sizeof(double);
    arrays_close(&arrays);
    return result;
}

static struct result run_triad(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    return run_arrays(job, plan, triad, 3);
}

static struct result run_load(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    return run_arrays(job, plan, load, 1);
}

static struct result run_update(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    return run_arrays(job, plan, update, 1);
}

static struct result run_copy(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    return run_arrays(job, plan, copy, 2);
}

struct chain {
    void **at;
    struct places places;
};

static double chase(void *state, long inner)
{
    struct chain *chain = state;
    void **at = chain->at;
    struct pinned before = pin_among(&chain->places.on, 0);
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        at = *at;
    __asm__ volatile("" : "+r"(at));
    double seconds = clock_now() - start;
    unpin(before);
    chain->at = at;
    return seconds;
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13; /* G. Marsaglia, Xorshift RNGs, 2003 */
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Links the first word of every line into one cycle in random order, so that no prefetcher knows
 * the next one (S. Sattolo, 1986: a shuffle that always gives a single cycle). Returns 0, or -1 if
 * there is no memory. */
static int link_lines(char *block, long lines, long line)
{
    uint32_t *order = malloc((size_t)lines * sizeof *order);
    if (!order)
        return -1;
    uint64_t random = 88172645463325252u;
    for (long i = 0; i < lines; i++)
        order[i] = (uint32_t)i;
    for (long i = lines - 1; i > 0; i--) {
        long j = (long)(next_random(&random) % (uint64_t)i);
        uint32_t other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (long i = 0; i < lines; i++)
        *(void **)(block + line * i) = block + line * (long)order[i];
    free(order);
    return 0;
}

static struct result run_chase(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    struct result result = {0};
    long bytes = job_integer(job, "bytes", 0), line = line_bytes(), lines = bytes / line;
    struct chain chain = {0};
    if (lines < 2)
        return result_absent("%ld bytes are less than two lines of %ld bytes", bytes, line);
    if (!fits_memory(1.1 * (double)bytes, &result) || places_open(&chain.places, job, &result))
        return result;
    char *block = aligned_reserve((size_t)bytes);
    if (block)
        stay_where_touched(block, (size_t)bytes);
    struct pinned before = pin_among(&chain.places.data, 0);
    int linked = block && link_lines(block, lines, line) == 0;
    unpin(before);
    if (linked) {
        chain.at = (void **)block;
        struct plan placed = *plan;
        placed.cpus = chain.places.on.numbers;
        result.batches = measure(&placed, chase, NULL, &chain);
    } else {
        result = result_absent("not enough memory for an array of %ld bytes", bytes);
    }
    free(block);
    places_close(&chain.places);
    return result;
}

static const struct key ARRAY_KEYS[] = {
    {"threads", INTEGER, 1, 1, 65536, NULL},
    {"bytes", INTEGER, 1, 1, MOST_BYTES, NULL},
    {0},
};
static const struct key CHASE_KEYS[] = {{"bytes", INTEGER, 1, 1, MOST_BYTES, NULL}, {0}};
static const struct key REMOTE_TRIAD_KEYS[] = {
    {"threads", INTEGER, 1, 1, 65536, NULL},
    {"bytes", INTEGER, 1, 1, MOST_BYTES, NULL},
    {"on", INTEGER, 1, 0, MOST_DOMAINS - 1, NULL},
    {"data", INTEGER, 1, 0, MOST_DOMAINS - 1, NULL},
    {0},
};
static const struct key REMOTE_CHASE_KEYS[] = {
    {"bytes", INTEGER, 1, 1, MOST_BYTES, NULL},
    {"on", INTEGER, 1, 0, MOST_DOMAINS - 1, NULL},
    {"data", INTEGER, 1, 0, MOST_DOMAINS - 1, NULL},
    {0},
};

const struct job_kind memory_jobs[] = {
    {"triad", ARRAY_KEYS, NULL, run_triad},
    {"load", ARRAY_KEYS, NULL, run_load},
    {"update", ARRAY_KEYS, NULL, run_update},
    {"copy", ARRAY_KEYS, NULL, run_copy},
    {"chase", CHASE_KEYS, NULL, run_chase},
    {"remote_triad", REMOTE_TRIAD_KEYS, NULL, run_triad},
    {"remote_chase", REMOTE_CHASE_KEYS, NULL, run_chase},
    {0},
};
