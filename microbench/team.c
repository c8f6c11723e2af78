/* Threads that start together: see team.h. */
#define _POSIX_C_SOURCE 200809L
#include "team.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"

/* Starts further apart than this part of a batch mean that the threads did not contend throughout.
 */
static const double LARGEST_SKEW = 0.1;

void *aligned_reserve(size_t bytes)
{
    void *block = NULL;
    return posix_memalign(&block, 4096, bytes) == 0 ? block : NULL;
}

int team_open(struct team *team, long threads, struct result *absent)
{
    *team = (struct team){0};
    if (threads > omp_get_num_procs()) {
        *absent = result_absent("%ld threads, but this process may use %d CPU%s", threads,
                                omp_get_num_procs(), omp_get_num_procs() == 1 ? "" : "s");
        return -1;
    }
    int given = 0;
#pragma omp parallel num_threads((int)threads)
#pragma omp single
    given = omp_get_num_threads();
    if (given != threads) {
        *absent =
            result_absent("%ld threads requested, the OpenMP runtime provides %d", threads, given);
        return -1;
    }
    team->spans = aligned_reserve((size_t)threads * sizeof *team->spans);
    if (!team->spans) {
        *absent = result_absent("not enough memory for the times of %ld threads", threads);
        return -1;
    }
    team->threads = threads;
    return 0;
}

void team_begin(struct team *team)
{
#pragma omp barrier
    team->spans[omp_get_thread_num()].start = clock_now();
}

void team_end(struct team *team)
{
    team->spans[omp_get_thread_num()].end = clock_now();
}

static void bounds(const struct team *team, double *first_start, double *last_start,
                   double *last_end)
{
    *first_start = INFINITY;
    *last_start = *last_end = -INFINITY;
    for (long i = 0; i < team->threads; i++) {
        const struct span *span = &team->spans[i];
        *first_start = fmin(*first_start, span->start);
        *last_start = fmax(*last_start, span->start);
        *last_end = fmax(*last_end, span->end);
    }
}

double team_seconds(const struct team *team)
{
    double first_start, last_start, last_end;
    bounds(team, &first_start, &last_start, &last_end);
    return last_end - first_start;
}

double team_contended_seconds(const struct team *team)
{
    double first_start, last_start, last_end;
    bounds(team, &first_start, &last_start, &last_end);
    double whole = last_end - first_start;
    return last_start - first_start <= LARGEST_SKEW * whole ? whole : NAN;
}

void team_close(struct team *team)
{
    free(team->spans);
    *team = (struct team){0};
}

long line_bytes(void)
{
    long bytes = -1;
#ifdef _SC_LEVEL1_DCACHE_LINESIZE
    bytes = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
#endif
    return bytes >= (long)sizeof(void *) ? bytes : LINE;
}
