/* Prints whether teams are found to be left to themselves, for lines "THREADS NANOSECONDS" of paces
 * in the order in which they are seen. */
#include <stdio.h>

#include "pace.h"

int main(void)
{
    struct paces paces = {0};
    long threads;
    double nanoseconds;
    while (scanf("%ld %lf", &threads, &nanoseconds) == 2)
        puts(pace_is_own(&paces, threads, 1e-9 * nanoseconds) ? "own" : "shared");
    paces_free(&paces);
    return 0;
}
