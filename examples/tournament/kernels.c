/* Six small hybrid programs, each slow for another reason: kernels NAME SIZE STEPS */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 1000 /* of the pipeline */

static int rank, ranks;

static double *array(size_t count)
{
    double *values = malloc(count * sizeof *values);
    if (!values)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < count; i++)
        values[i] = 1.0 / (double)(i % 1000 + 1);
    return values;
}

/* Rows first .. last-1 of `rows` belong to this process. */
static void my_rows(int rows, int *first, int *last)
{
    *first = (int)((long)rows * rank / ranks);
    *last = (int)((long)rows * (rank + 1) / ranks);
}

static double sum_of_all(double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* A block of a square matrix is smoothed, then all is transposed: large messages to everybody. */
static double transpose(int size, int steps)
{
    int block = size / ranks;
    size_t count = (size_t)block * ranks * block;
    double *here = array(count), *there = array(count);
    for (int step = 0; step < steps; step++) {
#pragma omp parallel for
        for (int row = 0; row < block; row++)
            for (int sweep = 0; sweep < 4; sweep++)
                for (int i = 1; i < block * ranks; i++) {
                    double *at = here + (size_t)row * block * ranks + i;
                    *at = 0.5 * (*at + at[-1]);
                }
        MPI_Alltoall(here, block * block, MPI_DOUBLE, there, block * block, MPI_DOUBLE,
                     MPI_COMM_WORLD);
        double *other = here;
        here = there;
        there = other;
    }
    double sum = sum_of_all(here[0]);
    free(here);
    free(there);
    return sum;
}

/* Row i of a triangular matrix has i entries: equal blocks of rows are unequal work, which the
 * threads of a process share out as they go. */
static double triangle(int size, int steps)
{
    int first, last;
    my_rows(size, &first, &last);
    double *vector = array((size_t)size), sum = 0;
    for (int step = 0; step < steps; step++) {
        double mine = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : mine)
        for (int row = first; row < last; row++) {
            double product = 0;
            for (int i = 0; i <= row; i++)
                product += vector[i] / (row + i + 1.0);
            mine += product;
        }
        sum = sum_of_all(mine);
    }
    free(vector);
    return sum;
}

/* Half of the work of a process is done by its first thread alone. */
static double partial(int size, int steps)
{
    int first, last;
    my_rows(size, &first, &last);
    double *values = array((size_t)size), sum = 0;
    for (int step = 0; step < steps; step++) {
#pragma omp parallel for
        for (int i = first; i < last; i++)
            values[i] = sqrt(values[i] + step);
        double mine = 0;
        for (int i = first; i < last; i++)
            mine += sqrt(values[i]);
        sum = sum_of_all(mine);
    }
    free(values);
    return sum;
}

/* A short array in many parallel regions: threads have to be woken and met for little work. */
static double regions(int size, int steps)
{
    int first, last;
    my_rows(size, &first, &last);
    double *values = array((size_t)size);
    for (int step = 0; step < steps; step++)
        for (int region = 0; region < 20; region++) {
#pragma omp parallel for
            for (int i = first; i < last; i++)
                values[i] = 0.5 * values[i] + 1.0;
        }
    double sum = sum_of_all(values[first]);
    free(values);
    return sum;
}

/* Processes hand rows of a grid on to the next: each waits for many short messages. */
static double pipeline(int size, int steps)
{
    int first, last;
    my_rows(size, &first, &last);
    int width = last - first;
    double *row = array((size_t)width + 1);
    for (int step = 0; step < steps; step++)
        for (int line = 0; line < LINES; line++) {
            if (rank > 0)
                MPI_Recv(row, 1, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#pragma omp parallel for
            for (int i = 1; i <= width; i++)
                row[i] = sqrt(row[i] + row[0]) + sqrt(row[i] + line);
            if (rank < ranks - 1)
                MPI_Send(row + width, 1, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
        }
    double sum = sum_of_all(row[width]);
    free(row);
    return sum;
}

/* Every body acts on every other one; those of other processes come round a ring. */
static double bodies(int size, int steps)
{
    int count = size / ranks;
    double *place = array((size_t)count), *force = array((size_t)count);
    double *guests = array((size_t)count);
    for (int step = 0; step < steps; step++) {
        memcpy(guests, place, (size_t)count * sizeof *guests);
        for (int turn = 0; turn < ranks; turn++) {
#pragma omp parallel for
            for (int i = 0; i < count; i++)
                for (int j = 0; j < count; j++) {
                    double distance = place[i] - guests[j];
                    force[i] += distance / (distance * distance + 0.01);
                }
            MPI_Sendrecv_replace(guests, count, MPI_DOUBLE, (rank + 1) % ranks, 0,
                                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < count; i++)
            place[i] += 1e-9 * force[i];
    }
    double sum = sum_of_all(force[0]);
    free(place);
    free(force);
    free(guests);
    return sum;
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        double (*run)(int, int);
    } kernels[] = {{"transpose", transpose}, {"triangle", triangle}, {"partial", partial},
                   {"regions", regions},     {"pipeline", pipeline}, {"bodies", bodies}};
    int level;
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; count == 4 && i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(words[1], kernels[i].name) == 0) {
            double begin = MPI_Wtime();
            double sum = kernels[i].run(atoi(words[2]), atoi(words[3]));
            if (rank == 0)
                printf("%s %s: sum %.6g, %.4f s\n", words[1], words[2], sum, MPI_Wtime() - begin);
            MPI_Finalize();
            return 0;
        }
    if (rank == 0)
        fprintf(stderr, "usage: kernels transpose|triangle|partial|regions|pipeline|bodies SIZE "
                        "STEPS\n");
    MPI_Finalize();
    return 2;
}
