/* Calls of MPI by two ranks. The line of each ends with the name of what it calls. */
#include <mpi.h>

__attribute__((noinline)) static int exchange(int rank, int *x)
{
    MPI_Request requests[2];
    MPI_Irecv(x, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, &requests[0]);     /* at Irecv */
    MPI_Isend(&rank, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, &requests[1]); /* at Isend */
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);                           /* at Waitall */
    return *x;
}

/* Finds nothing, in two places by turns. */
__attribute__((noinline)) static int poll(MPI_Request *request)
{
    int done = 0, found = 0;
    for (int turn = 0; turn < 5; turn++) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE); /* at Test */
        found += done;
        MPI_Test(request, &done, MPI_STATUS_IGNORE); /* at Test */
        found += done;
    }
    return found;
}

int main(int argc, char **argv)
{
    int rank, x = 1, sum = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv); /* at Init */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 10; i++)
        sum += exchange(rank, &x);
    MPI_Allreduce(&sum, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* at Allreduce */
    if (rank == 0) {
        MPI_Irecv(&x, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, &request); /* at Irecv */
        sum += poll(&request);
        MPI_Send(&x, 1, MPI_INT, 1, 9, MPI_COMM_WORLD); /* at Send */
        MPI_Wait(&request, MPI_STATUS_IGNORE);          /* at Wait */
    } else {
        MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* at Recv */
        MPI_Send(&x, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);                    /* at Send */
    }
    MPI_Finalize(); /* at Finalize */
    return sum < 0;
}
