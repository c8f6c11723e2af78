/* MPI and OpenMP: a region before MPI_Init, then a message in each iteration, sent by the master
 * inside of its region. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int provided, rank, ranks, data[2] = {0};
#pragma omp parallel num_threads(2)
    data[omp_get_thread_num()]++;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 10; i++) {
#pragma omp parallel num_threads(2)
        {
#pragma omp master
            {
                int got;
                MPI_Sendrecv(data, 1, MPI_INT, (rank + 1) % ranks, i, &got, 1, MPI_INT,
                             (rank + ranks - 1) % ranks, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
#pragma omp barrier
        }
    }
    MPI_Finalize();
#pragma omp parallel num_threads(2)
    data[omp_get_thread_num()]++;
    return data[0] + data[1] == 4 ? 0 : 1;
}
