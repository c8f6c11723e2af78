/* Measures batches of 100 us by a clock that is made up, on a core that is shared before the time
 * in seconds that is the argument. Prints the number of batches, how many of them were taken on a
 * shared core, the seconds that all took, and why it stopped. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "batch.h"

static const double OWN = 3e-10, SHARED = 6e-10, LOOKING = 3e-6, WORK = 100e-6;
static double now = 1, until;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    now += 25e-9;
    time->tv_sec = (time_t)now;
    time->tv_nsec = (long)(1e9 * (now - (double)time->tv_sec));
    return 0;
}

double pace_now(long threads, const int *cpus)
{
    (void)threads;
    (void)cpus;
    now += LOOKING;
    return now < until ? SHARED : OWN;
}

int pace_is_own(struct paces *paces, long threads, double seconds)
{
    (void)paces;
    (void)threads;
    return seconds < SHARED;
}

static double work(void *unused, long inner)
{
    (void)unused;
    now += (now < until ? 2 : 1) * WORK * (double)inner;
    return WORK * (double)inner;
}

int main(int count, char **words)
{
    double start = now;
    struct plan plan = {.budget = 0.1, .precision = 0.03, .least = 50, .most = 200, .threads = 1};
    until = start + (count > 1 ? atof(words[1]) : 0);
    struct batches all = measure(&plan, work, NULL, NULL);
    long shared = 0;
    for (long i = 0; i < all.n; i++)
        shared += all.pace[i] >= SHARED;
    printf("%ld %ld %.4f %s\n", all.n, shared, now - start, all.stopped);
    batches_free(&all);
    return 0;
}
