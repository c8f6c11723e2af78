/* The calls with counts of type MPI_Count, which are the same otherwise: see call.h. */
#define _GNU_SOURCE
#include <mpi.h>

#if MPI_VERSION >= 4
#define LARGE
#include "collectives.c"
#include "p2p.c"
#include "timed.c"
#endif
