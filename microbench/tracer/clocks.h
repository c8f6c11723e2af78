/* Readings of two clocks at (nearly) the same time, from which the merge aligns the hosts. */
#ifndef POPMODEL_CLOCKS_H
#define POPMODEL_CLOCKS_H

/* In MPI_Init, collective over MPI_COMM_WORLD: finds the hosts, and where there are several the
 * first rank of each exchanges messages with rank 0. */
void clocks_start(int rank, int size);

/* In MPI_Finalize, as long as MPI can be used: exchanges once more. */
void clocks_end(int rank);

#endif
