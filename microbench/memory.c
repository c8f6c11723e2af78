/* Bandwidth and latency of caches and memory.
 *
 *   triad threads=T bytes=B   a = b + s c over three arrays of B bytes each, STREAM's triad (J. D.
 *                             McCalpin, IEEE TCCA Newsletter, December 1995). One operation is one
 *                             sweep; moved = 3 B, STREAM's count: the line that a store reads
 *                             before it is written is not in it
 *   load threads=T bytes=B    reads an array of B bytes; moved = B
 *   copy threads=T bytes=B    memcpy() of an array of B bytes, what packing and message passing
 *                             use; moved = 2 B
 *   chase bytes=B             goes through B bytes from line to line in a random cycle, each load
 *                             waiting for the one before; one operation is one load
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "node.h"
#include "team.h"
#include "vectors.h"

enum { GRAIN_BYTES = GRAIN * sizeof(double) };
#define MOST_BYTES (1L << 36) /* lines are counted with 32 bits */

struct arrays {
    struct team team;
    struct vectors vectors;
    void *blocks[3];
    double *a, *b, *c; /* as many as the job uses */
    long doubles;
};

/* The part of a thread, in whole grains. */
static void part_of(const struct arrays *arrays, long thread, long *first, long *count)
{
    long grains = arrays->doubles / GRAIN;
    *first = grains * thread / arrays->team.threads * GRAIN;
    *count = grains * (thread + 1) / arrays->team.threads * GRAIN - *first;
}

static void touch(struct arrays *arrays)
{
#pragma omp parallel num_threads((int)arrays->team.threads)
    {
        long first, count;
        part_of(arrays, omp_get_thread_num(), &first, &count);
        for (long i = first; i < first + count; i++) {
            arrays->a[i] = 1;
            if (arrays->b)
                arrays->b[i] = 2;
            if (arrays->c)
                arrays->c[i] = 0.5;
        }
    }
}

static double triad(void *state, long inner)
{
    struct arrays *arrays = state;
#pragma omp parallel num_threads((int)arrays->team.threads)
    {
        long at, count;
        part_of(arrays, omp_get_thread_num(), &at, &count);
        team_begin(&arrays->team);
        for (long i = 0; i < inner; i++)
            arrays->vectors.triad(arrays->a + at, arrays->b + at, arrays->c + at, 3.0, count);
        team_end(&arrays->team);
    }
    return team_contended_seconds(&arrays->team);
}

static double load(void *state, long inner)
{
    struct arrays *arrays = state;
#pragma omp parallel num_threads((int)arrays->team.threads)
    {
        long at, count;
        part_of(arrays, omp_get_thread_num(), &at, &count);
        team_begin(&arrays->team);
        arrays->vectors.load(arrays->a + at, count, inner);
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
        part_of(arrays, omp_get_thread_num(), &at, &count);
        team_begin(&arrays->team);
        for (long i = 0; i < inner; i++) {
            memcpy(arrays->a + at, arrays->b + at, (size_t)count * sizeof(double));
            __asm__ volatile("" : : : "memory");
        }
        team_end(&arrays->team);
    }
    return team_contended_seconds(&arrays->team);
}

/* Bytes of memory that are free to use, as the kernel estimates; -1 if it does not tell. */
static long long available_bytes(void)
{
    char *content = file_read("/proc/meminfo");
    const char *line = content ? strstr(content, "MemAvailable:") : NULL;
    long long kilobytes = -1;
    if (line)
        sscanf(line, "MemAvailable: %lld", &kilobytes);
    free(content);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

/* Where there is not enough memory the kernel kills the program rather than refuse it. */
static int fits_memory(double bytes, struct result *absent)
{
    long long available = available_bytes();
    if (available < 0 || bytes <= 0.8 * (double)available)
        return 1;
    *absent = result_absent("needs %.0f MiB of memory, %.0f MiB are available", bytes / 1048576,
                            (double)available / 1048576);
    return 0;
}

/* The arrays start at different offsets within a page: a load behind a store to the same offset of
 * another page would have to wait for it on many processors. */
static double *reserve_array(struct arrays *arrays, int which)
{
    size_t shift = (size_t)which * (1024 + 2 * LINE);
    char *block = aligned_reserve((size_t)arrays->doubles * sizeof(double) + shift);
    arrays->blocks[which] = block;
    return block ? (double *)(block + shift) : NULL;
}

static struct result run_arrays(const struct job *job, const struct plan *plan, batch_fn batch,
                                int count)
{
    struct result result = {0};
    struct arrays arrays = {.vectors = widest_vectors()};
    long bytes = job_integer(job, "bytes", 0), threads = job_integer(job, "threads", 1);
    arrays.doubles = bytes / GRAIN_BYTES * GRAIN;
    if (arrays.doubles / GRAIN < threads)
        return result_absent("%ld bytes are too few for %ld threads of at least %d bytes each",
                             bytes, threads, (int)GRAIN_BYTES);
    if (!fits_memory((double)count * (double)bytes, &result) ||
        team_open(&arrays.team, threads, &result))
        return result;

    double **each[] = {&arrays.a, &arrays.b, &arrays.c};
    int have = 0;
    while (have < count && (*each[have] = reserve_array(&arrays, have)))
        have++;
    if (have == count) {
        touch(&arrays);
        result.batches = measure(plan, batch, NULL, &arrays);
        /* load reads one array, triad and copy touch all of theirs once */
        result.moved = (double)count * (double)arrays.doubles * sizeof(double);
    } else {
        result = result_absent("not enough memory for %d arrays of %ld bytes", count, bytes);
    }
    for (int i = 0; i < 3; i++)
        free(arrays.blocks[i]);
    team_close(&arrays.team);
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

static struct result run_copy(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    return run_arrays(job, plan, copy, 2);
}

struct chain {
    void **at;
};

static double chase(void *state, long inner)
{
    struct chain *chain = state;
    void **at = chain->at;
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        at = *at;
    __asm__ volatile("" : "+r"(at));
    double seconds = clock_now() - start;
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

static long line_bytes(void)
{
    long bytes = -1;
#ifdef _SC_LEVEL1_DCACHE_LINESIZE
    bytes = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
#endif
    return bytes >= (long)sizeof(void *) ? bytes : LINE;
}

static struct result run_chase(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    struct result result = {0};
    long bytes = job_integer(job, "bytes", 0), line = line_bytes(), lines = bytes / line;
    if (lines < 2)
        return result_absent("%ld bytes are less than two lines of %ld bytes", bytes, line);
    if (!fits_memory(1.1 * (double)bytes, &result))
        return result;
    char *block = aligned_reserve((size_t)bytes);
    if (block && link_lines(block, lines, line) == 0) {
        struct chain chain = {(void **)block};
        result.batches = measure(plan, chase, NULL, &chain);
    } else {
        result = result_absent("not enough memory for an array of %ld bytes", bytes);
    }
    free(block);
    return result;
}

static const struct key ARRAY_KEYS[] = {
    {"threads", INTEGER, 1, 1, 65536, NULL},
    {"bytes", INTEGER, 1, 1, MOST_BYTES, NULL},
    {0},
};
static const struct key CHASE_KEYS[] = {{"bytes", INTEGER, 1, 1, MOST_BYTES, NULL}, {0}};

const struct job_kind memory_jobs[] = {
    {"triad", ARRAY_KEYS, NULL, run_triad},
    {"load", ARRAY_KEYS, NULL, run_load},
    {"copy", ARRAY_KEYS, NULL, run_copy},
    {"chase", CHASE_KEYS, NULL, run_chase},
    {0},
};
