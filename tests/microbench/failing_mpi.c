/* Failures on demand, to be loaded before the C library and MPI (LD_PRELOAD): MPI_Reduce_local never
 * works, and there is no memory for a buffer of just 123456 bytes. */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>

int MPI_Reduce_local(const void *in, void *inout, int count, MPI_Datatype type, MPI_Op operation)
{
    (void)in;
    (void)inout;
    (void)count;
    (void)type;
    (void)operation;
    return MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OP);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    *block = bytes == 123456 ? NULL : aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
    return *block ? 0 : ENOMEM;
}
