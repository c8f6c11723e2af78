/* Readings of two clocks at (nearly) the same time, from which the merge aligns the hosts. */
#ifndef POPMODEL_CLOCKS_H
#define POPMODEL_CLOCKS_H

#include <stdbool.h>

/* In MPI_Init, collective over MPI_COMM_WORLD: finds the hosts, and where there are several the
 * first rank of each that records exchanges messages with rank 0. Ranks that were told to record
 * and cannot (no room, no such directory on their host) take part: the others wait for them. */
void clocks_start(int rank, int size, bool records);

/* In MPI_Finalize, as long as MPI can be used: exchanges once more. */
void clocks_end(int rank);

#endif
