/* The pace of cores: see pace.h. */
#define _POSIX_C_SOURCE 200809L
#include "pace.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "clock.h"
#include "cpus.h"
#include "text.h"

enum { TURNS = 8192 };
/* Times the best: more than clocks change, less than another thread of the core takes. */
static const double SHARED = 1.4;
/* Times the best of fewer threads: what clocks lose where more cores are busy. */
static const double BUSIER = 1.2;

static double turn(void)
{
    double start = clock_now();
    for (int i = 0; i < TURNS; i++)
        __asm__ volatile("");
    return (clock_now() - start) / TURNS;
}

static double turn_on(int cpu)
{
    struct pinned before = pin_to(cpu);
    double seconds = turn();
    unpin(before);
    return seconds;
}

double pace_now(long threads, const int *cpus)
{
    double slowest = 0;
    if (threads == 0)
        return 0;
    if (threads == 1) /* without a region, which would wake threads that sleep */
        return cpus ? turn_on(cpus[0]) : turn();
#pragma omp parallel num_threads((int)threads) reduction(max : slowest)
    slowest = cpus ? turn_on(cpus[omp_get_thread_num()]) : turn();
    return slowest;
}

int pace_is_own(struct paces *paces, long threads, double seconds)
{
    if (!paces)
        return 1;
    struct best *own = NULL;
    double fewer = INFINITY;
    for (struct best *best = paces->best; best < paces->best + paces->count; best++) {
        if (best->threads == threads)
            own = best;
        else if (best->threads < threads)
            fewer = fmin(fewer, best->seconds);
    }
    if (!own) {
        size_t size = (size_t)(paces->count + 1) * sizeof *paces->best;
        paces->best = memory_resize(paces->best, size);
        own = paces->best + paces->count++;
        *own = (struct best){threads, seconds};
    }
    own->seconds = fmin(own->seconds, seconds);
    return seconds <= SHARED * fmin(own->seconds, BUSIER * fewer);
}

void paces_free(struct paces *paces)
{
    free(paces->best);
    *paces = (struct paces){0};
}
