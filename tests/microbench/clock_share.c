/* Prints what a reading of the clock costs, by a clock that is made up: a reading takes 25 ns, and
 * every thousandth is interrupted for 4 ms. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>

#include "batch.h"

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static long long nanoseconds, readings;
    (void)clock;
    nanoseconds += ++readings % 1000 ? 25 : 4000000;
    now->tv_sec = nanoseconds / 1000000000;
    now->tv_nsec = nanoseconds % 1000000000;
    return 0;
}

int main(void)
{
    printf("%g\n", clock_share());
    return 0;
}
