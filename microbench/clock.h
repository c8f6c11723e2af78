/* The clock of all measurements.
 *
 * CLOCK_MONOTONIC is the same clock on every core of a node, so that the times of two threads may
 * be compared; clocks of two nodes never are. OpenMP's and MPI's own clocks read the same counter
 * but differ in resolution from library to library. */
#ifndef POPMODEL_CLOCK_H
#define POPMODEL_CLOCK_H

#include <time.h>

/* Seconds since a fixed moment. */
static inline double clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds since 1970, for the record only. */
static inline double clock_date(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The smallest difference that two readings show, in seconds: resolution and cost of a reading
 * together. */
static inline double clock_tick(void)
{
    double least = 1.0;
    for (int i = 0; i < 200; i++) {
        double first = clock_now(), second = clock_now();
        while (second <= first)
            second = clock_now();
        if (second - first < least)
            least = second - first;
    }
    return least;
}

#endif
