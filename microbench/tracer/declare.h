/* Calls that some MPI libraries have without declaring them, or declare in newer versions only.
 * Declaring a function twice does no harm, and the wrapper of one that a library lacks is never
 * called.
 */
#ifndef POPMODEL_DECLARE_H
#define POPMODEL_DECLARE_H

#include <mpi.h>

#include "state.h"

#if MPI_VERSION < 3
#error "the tracer needs an MPI of version 3.0 (2012) or newer"
#endif

EXPORTED int MPI_Isendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype,
                           int, int, MPI_Comm, MPI_Request *);
EXPORTED int MPI_Isendrecv_replace(void *, int, MPI_Datatype, int, int, int, int, MPI_Comm,
                                   MPI_Request *);
EXPORTED int MPI_Parrived(MPI_Request, int, int *);
EXPORTED int MPI_Comm_idup_with_info(MPI_Comm, MPI_Info, MPI_Comm *, MPI_Request *);

#endif
