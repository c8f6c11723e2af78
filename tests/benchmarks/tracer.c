/* Times of MPI calls and OpenMP constructs that do next to nothing: what a tracer adds to them shows.
 *
 * Prints a line for each: name, family, calls in one operation, median ns of an operation.
 */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 101, OPERATIONS = 300 };

static MPI_Comm own;
static char out[8], in[8];
static volatile long sink;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static void iprobe(int n)
{
    for (int i = 0, flag; i < n; i++)
        MPI_Iprobe(0, i % 7, own, &flag, MPI_STATUS_IGNORE);
}

static void barrier(int n)
{
    for (int i = 0; i < n; i++)
        MPI_Barrier(own);
}

static void allreduce(int n)
{
    for (int i = 0; i < n; i++)
        MPI_Allreduce(out, in, 1, MPI_CHAR, MPI_MAX, own);
}

static void sendrecv(int n)
{
    for (int i = 0; i < n; i++)
        MPI_Sendrecv(out, 8, MPI_CHAR, 0, 1, in, 8, MPI_CHAR, 0, 1, own, MPI_STATUS_IGNORE);
}

static void exchange(int n)
{
    MPI_Request requests[2];
    for (int i = 0; i < n; i++) {
        MPI_Irecv(in, 8, MPI_CHAR, 0, 1, own, &requests[0]);
        MPI_Isend(out, 8, MPI_CHAR, 0, 1, own, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

static void parallel(int n)
{
    for (int i = 0; i < n; i++) {
#pragma omp parallel
        sink = i;
    }
}

static void omp_barrier(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp barrier
    }
}

static void critical(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp critical
        sink = i;
    }
}

static void single(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp single nowait
        sink = i;
    }
}

static void dynamic(int n)
{
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < n; i++)
        sink = i;
}

static const struct {
    const char *name, *family;
    int calls;
    void (*run)(int);
} all[] = {
    {"MPI_Iprobe", "MPI", 1, iprobe},
    {"MPI_Barrier", "MPI", 1, barrier},
    {"MPI_Allreduce", "MPI", 1, allreduce},
    {"MPI_Sendrecv", "MPI", 1, sendrecv},
    {"MPI_Irecv, Isend, Waitall", "MPI", 3, exchange},
    {"parallel", "OpenMP", 1, parallel},
    {"barrier", "OpenMP", 1, omp_barrier},
    {"critical", "OpenMP", 1, critical},
    {"single nowait", "OpenMP", 1, single},
    {"chunk of a dynamic loop", "OpenMP", 1, dynamic},
};

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

int main(int count, char **words)
{
    int provided;
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        double each[BATCHES];
        for (int batch = -5; batch < BATCHES; batch++) {
            double begin = now();
            all[k].run(OPERATIONS);
            if (batch >= 0)
                each[batch] = (now() - begin) / OPERATIONS;
        }
        qsort(each, BATCHES, sizeof *each, compare);
        printf("%s\t%s\t%d\t%.1f\n", all[k].name, all[k].family, all[k].calls, each[BATCHES / 2]);
    }
    MPI_Finalize();
    return 0;
}
