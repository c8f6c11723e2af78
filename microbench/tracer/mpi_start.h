/* MPI's start and end for wrappers of other languages, whose libraries may not come through
 * MPI_Init and MPI_Finalize of C:
 *
 *     struct thread *t = mpi_begin(CALL_Init);
 *     pmpi_init_(error);
 *     if (t)
 *         mpi_begun(t, CALL_Init, *error);
 */
#ifndef POPMODEL_MPI_START_H
#define POPMODEL_MPI_START_H

#include "state.h"

/* Starts the recording, with the ENTER of the call. NULL: nothing is recorded, or one who called us
 * does it. */
struct thread *mpi_begin(int call);

/* After the call: MPI can be used. */
void mpi_begun(struct thread *, int call, int result);

/* After MPI_Finalize. */
void mpi_ended(struct thread *, int result);

#endif
