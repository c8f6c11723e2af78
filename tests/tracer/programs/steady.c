/* 40 iterations of the same work, some 10 ms each, and short bursts between them. */
#include <mpi.h>

static double work(long n)
{
    volatile double x = 1.0;
    for (long i = 0; i < n; i++)
        x = x * 1.0000001 + 1e-9;
    return x;
}

int main(int count, char **arguments)
{
    double mine = 0.0, all;
    MPI_Init(&count, &arguments);
    for (int step = 0; step < 40; step++) {
        mine += work(2500000);
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < 20; i++) {
            mine += work(1500);
            MPI_Barrier(MPI_COMM_SELF);
        }
    }
    MPI_Finalize();
    return 0;
}
