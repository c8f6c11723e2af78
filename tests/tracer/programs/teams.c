/* Every thread of a parallel region sends to and receives from the same thread of the next rank. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>

#define THREADS 2
#define STEPS 20

static double work(int n)
{
    double sum = 0;
    for (int i = 1; i < 20000 * n; i++)
        sum += 1.0 / i;
    return sum;
}

int main(int count, char **words)
{
    int provided, me, size;
    volatile double sum = 0;
    MPI_Comm own[THREADS];
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided != MPI_THREAD_MULTIPLE) {
        fputs("no MPI_THREAD_MULTIPLE\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (int n = 0; n < THREADS; n++)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[n]);
    for (int step = 0; step < STEPS; step++) {
#pragma omp parallel num_threads(THREADS)
        {
            int n = omp_get_thread_num(), there = me, all;
            sum = work(1 + (me + n) % 2);
            MPI_Sendrecv_replace(&there, 1, MPI_INT, (me + 1) % size, n, (me + size - 1) % size, n,
                                 own[n], MPI_STATUS_IGNORE);
#pragma omp barrier
            MPI_Allreduce(&there, &all, 1, MPI_INT, MPI_SUM, own[n]);
            sum = work(1);
        }
    }
    for (int n = 0; n < THREADS; n++)
        MPI_Comm_free(&own[n]);
    MPI_Finalize();
    return 0;
}
