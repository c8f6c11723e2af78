/* Cannon's matrix multiplication C = A B, MPI + OpenMP.
 *
 *     mpirun -np 4 ./cannon [N [PRODUCTS]]
 *
 * N is 1024 by default; P has to be a square whose root divides it. One product of small matrices is
 * done before a processor is at its pace: several of them are timed together, and times are those of
 * one on average.
 *
 * s x s processes hold a block of N/s x N/s of each matrix. In each of s steps the threads multiply
 * the blocks at hand, sharing the rows of the block of C, then the blocks of A move one process to
 * the left and those of B one up. Blocks start where the first step needs them. The phases are timed
 * by every process. The signature cannon.toml that comes with popmodel describes the same program.
 *
 * It checks its own result: with A(i,k) = i + k and B(k,j) = k - j, numbered from 0,
 * C(i,j) = (i - j) S1 + S2 - N i j, with S1 the sum of k and S2 the sum of k squared. Products add up.
 */
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum phase { MULTIPLY, SHIFT_A, SHIFT_B, PHASES };
static const char *const phase_name[PHASES] = {"matmul", "shift A", "shift B"};

static void fail(int rank, const char *what) {
    if (rank == 0) fprintf(stderr, "cannon: %s\n", what);
    MPI_Finalize();
    exit(2);
}

static double *allocate(long cells) {
    double *memory = malloc((size_t)cells * sizeof(double));
    if (memory == NULL) {
        fprintf(stderr, "cannon: no memory for %ld MB\n", cells * (long)sizeof(double) / 1000000);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void multiply(long n, const double *restrict a, const double *restrict b, double *restrict c) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++) {
            double factor = a[i * n + k];
            for (long j = 0; j < n; j++) c[i * n + j] += factor * b[k * n + j];
        }
}

/* Sends a block to one process and receives the next from another, into the second buffer. */
static void shift(double **block, double **spare, long cells, int to, int from, MPI_Comm grid) {
    MPI_Sendrecv(*block, (int)cells, MPI_DOUBLE, to, 0, *spare, (int)cells, MPI_DOUBLE, from, 0, grid,
                 MPI_STATUS_IGNORE);
    double *swap = *block;
    *block = *spare;
    *spare = swap;
}

static int earlier(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* The time below which a tenth of them are: with nobody else on the processor, but no luck either. */
static double tenth(double *times, long count) {
    qsort(times, (size_t)count, sizeof *times, earlier);
    return times[count / 10];
}

static long argument(int rank, int count, char **words, int index, long otherwise) {
    if (count <= index) return otherwise;
    char *end;
    long value = strtol(words[index], &end, 10);
    if (*end != '\0' || value < 1) fail(rank, "usage: cannon [N [PRODUCTS]], both whole numbers above 0");
    return value;
}

int main(int count, char **words) {
    int provided, rank, processes;
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    long rows = argument(rank, count, words, 1, 1024), products = argument(rank, count, words, 2, 1);
    if (count > 3) fail(rank, "usage: cannon [N [PRODUCTS]], both whole numbers above 0");
    int s = (int)lround(sqrt(processes));
    if (s * s != processes) fail(rank, "the number of processes has to be a square: 1, 4, 9, 16, ...");
    if (rows % s) fail(rank, "the root of the number of processes has to divide N");
    long n = rows / s, cells = n * n;
    if (cells > 2147483647L) fail(rank, "a block is too large for one message: use more processes");

    int extent[2] = {s, s}, periodic[2] = {1, 1}, place[2], up, down, left, right;
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, extent, periodic, 0, &grid);
    MPI_Cart_coords(grid, rank, 2, place);
    MPI_Cart_shift(grid, 1, -1, &right, &left);
    MPI_Cart_shift(grid, 0, -1, &down, &up);

    double *a = allocate(cells), *b = allocate(cells), *c = allocate(cells);
    double *spare_a = allocate(cells), *spare_b = allocate(cells);
    long i0 = place[0] * n, j0 = place[1] * n, k0 = (place[0] + place[1]) % s * n;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            a[i * n + j] = (double)(i0 + i + k0 + j);
            b[i * n + j] = (double)(k0 + i - j0 - j);
            c[i * n + j] = spare_a[i * n + j] = spare_b[i * n + j] = 0.0;
        }

    double spent[PHASES] = {0}, *taken = allocate(products), *most_taken = allocate(products);
    MPI_Barrier(grid);
    double begin = MPI_Wtime(), done = begin;
    for (long step = 0; step < products * s; step++) { /* after s steps the blocks are where they were */
        double t0 = MPI_Wtime();
        multiply(n, a, b, c);
        double t1 = MPI_Wtime();
        shift(&a, &spare_a, cells, left, right, grid);
        double t2 = MPI_Wtime();
        shift(&b, &spare_b, cells, up, down, grid);
        double t3 = MPI_Wtime();
        spent[MULTIPLY] += t1 - t0, spent[SHIFT_A] += t2 - t1, spent[SHIFT_B] += t3 - t2;
        if ((step + 1) % s == 0) taken[step / s] = t3 - done, done = t3;
    }
    double runtime = (MPI_Wtime() - begin) / products, slowest, mean[PHASES], most[PHASES];
    for (int p = 0; p < PHASES; p++) spent[p] /= products;
    MPI_Reduce(&runtime, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, grid);
    MPI_Reduce(taken, most_taken, (int)products, MPI_DOUBLE, MPI_MAX, 0, grid);
    MPI_Reduce(spent, mean, PHASES, MPI_DOUBLE, MPI_SUM, 0, grid);
    MPI_Reduce(spent, most, PHASES, MPI_DOUBLE, MPI_MAX, 0, grid);

    double m = (double)rows, s1 = m * (m - 1) / 2, s2 = (m - 1) * m * (2 * m - 1) / 6;
    double error = 0.0, worst;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            double row = (double)(i0 + i), column = (double)(j0 + j);
            double expected = products * ((row - column) * s1 + s2 - m * row * column);
            error = fmax(error, fabs(c[i * n + j] - expected));
        }
    MPI_Allreduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, grid);
    /* rounding of N sums of such products, each time */
    int correct = worst <= 1e-14 * m * products * products * (s2 + m * m * m);
    if (rank == 0) {
        printf("cannon  N=%ld  %ld products  %d processes x %d threads  grid %dx%d\n", rows, products, processes, omp_get_max_threads(), s, s);
        printf("%-10s %12.6f s\n", "runtime", slowest);
        printf("%-10s %12.9f s a product\n", "tenth", tenth(most_taken, products));
        for (int p = 0; p < PHASES; p++)
            printf("%-10s %12.6f s on average, %.6f s at most\n", phase_name[p], mean[p] / processes, most[p]);
        printf("%-10s largest error %.1e: %s\n", "check", worst, correct ? "correct" : "WRONG");
    }
    MPI_Finalize();
    return correct ? 0 : 1;
}
