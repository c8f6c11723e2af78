/* Large arrays of a team: see arrays.h. */
#define _GNU_SOURCE
#include "arrays.h"

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "text.h"

enum { GRAIN_BYTES = GRAIN * sizeof(double) };

int places_open(struct places *places, const struct job *job, struct result *absent)
{
    *places = (struct places){0};
    const char *const keys[] = {"on", "data"};
    struct cpus *const wanted[] = {&places->on, &places->data};
    for (int i = 0; i < 2; i++) {
        long domain = job_integer(job, keys[i], -1);
        if (domain < 0)
            continue;
        *wanted[i] = cpus_of_domain(domain);
        if (wanted[i]->count == 0) {
            *absent =
                result_absent("this process may use no processor of a memory domain %ld", domain);
            places_close(places);
            return -1;
        }
    }
    long threads = job_integer(job, "threads", 1);
    if (places->on.count && threads > places->on.count) {
        *absent = result_absent(
            "%ld threads, but memory domain %ld has %d core%s that this process may use", threads,
            job_integer(job, "on", 0), places->on.count, places->on.count == 1 ? "" : "s");
        places_close(places);
        return -1;
    }
    return 0;
}

void places_close(struct places *places)
{
    cpus_free(&places->on);
    cpus_free(&places->data);
}

struct pinned pin_among(const struct cpus *cpus, long number)
{
    /* with fewer processors than threads, several of them touch from one */
    return cpus->count ? pin_to(cpus->numbers[number % cpus->count]) : (struct pinned){0};
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
int fits_memory(double bytes, struct result *absent)
{
    long long available = available_bytes();
    if (available < 0 || bytes <= 0.8 * (double)available)
        return 1;
    *absent = result_absent("needs %.0f MiB of memory, %.0f MiB are available", bytes / 1048576,
                            (double)available / 1048576);
    return 0;
}

/* A policy of its own, even one that says what is done anyway, exempts memory from the automatic
 * balancing between domains, which would move it within seconds. Where the kernel refuses (a
 * container without the right to) nothing is lost but that protection. */
void stay_where_touched(void *block, size_t bytes)
{
#ifdef SYS_mbind
    enum { LOCAL_POLICY = 4 }; /* MPOL_LOCAL of <linux/mempolicy.h>: where it is touched first */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)block / page * page;
    syscall(SYS_mbind, first, (uintptr_t)block + bytes - first, LOCAL_POLICY, NULL, 0, 0);
#else
    (void)block;
    (void)bytes;
#endif
}

void arrays_part(const struct arrays *arrays, long thread, long *first, long *count)
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
        struct pinned before = pin_among(&arrays->places.data, omp_get_thread_num());
        arrays_part(arrays, omp_get_thread_num(), &first, &count);
        for (long i = first; i < first + count; i++) {
            arrays->a[i] = 1;
            if (arrays->b)
                arrays->b[i] = 2;
            if (arrays->c)
                arrays->c[i] = 0.5;
        }
        unpin(before);
    }
}

/* The arrays start at different offsets within a page: a load behind a store to the same offset of
 * another page would have to wait for it on many processors. */
static double *reserve_array(struct arrays *arrays, int which)
{
    size_t shift = (size_t)which * (1024 + 2 * LINE);
    size_t bytes = (size_t)arrays->doubles * sizeof(double) + shift;
    char *block = aligned_reserve(bytes);
    arrays->blocks[which] = block;
    if (!block)
        return NULL;
    if (arrays->places.data.count)
        stay_where_touched(block, bytes);
    return (double *)(block + shift);
}

int arrays_open(struct arrays *arrays, const struct job *job, int count, long bytes,
                struct result *absent)
{
    long threads = job_integer(job, "threads", 1);
    *arrays = (struct arrays){.vectors = widest_vectors(), .doubles = bytes / GRAIN_BYTES * GRAIN};
    if (arrays->doubles / GRAIN < threads) {
        *absent = result_absent("%ld bytes are too few for %ld threads of at least %d bytes each",
                                bytes, threads, (int)GRAIN_BYTES);
        return -1;
    }
    if (!fits_memory((double)count * (double)bytes, absent) ||
        places_open(&arrays->places, job, absent))
        return -1;
    if (team_open(&arrays->team, threads, absent)) {
        places_close(&arrays->places);
        return -1;
    }
    double **each[] = {&arrays->a, &arrays->b, &arrays->c};
    for (int i = 0; i < count; i++) {
        *each[i] = reserve_array(arrays, i);
        if (!*each[i]) {
            *absent = result_absent("not enough memory for %d arrays of %ld bytes", count, bytes);
            arrays_close(arrays);
            return -1;
        }
    }
    touch(arrays);
    return 0;
}

void arrays_close(struct arrays *arrays)
{
    for (int i = 0; i < 3; i++)
        free(arrays->blocks[i]);
    places_close(&arrays->places);
    team_close(&arrays->team);
}
