/* A line of cells, divided among processes: the front ends' golden program in C. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int read_steps(const char *path)
{
    int steps = 0;
    FILE *file = fopen(path, "r");
    if (file != NULL && fscanf(file, "%d", &steps) != 1) steps = 0;
    return steps;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long cells = atol(argv[1]);
    int steps = read_steps(argv[2]);
    long n = cells / size;
    double *u = calloc(n + 2, 8), *v = calloc(n + 2, 8), *part = calloc(64, 8), most = 0.0;
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(u + 1, 1, MPI_DOUBLE, left, 0, u + n + 1, 1, MPI_DOUBLE, right, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(u + n, 1, MPI_DOUBLE, right, 1, u, 1, MPI_DOUBLE, left, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        #pragma omp parallel for schedule(static, 1)
        for (int block = 0; block < 64; block++) part[block] = 0.0;
        #pragma omp parallel for reduction(max : most)
        for (long i = 1; i <= n; i++) {
            v[i] = 0.25 * u[i - 1] + 0.5 * u[i] + 0.25 * u[i + 1];
            if (v[i] > most) most = v[i];
        }
        double *next = v;
        v = u;
        u = next;
        if (step % 10 == 0)
            MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    for (int twice = 0; twice < steps / 50; twice++)
        MPI_Bcast(u, (int)n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    free(u);
    free(v);
    free(part);
    MPI_Finalize();
    return 0;
}
