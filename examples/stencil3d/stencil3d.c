/* Damped Jacobi sweeps of a 7-point stencil on a cube of N x N x N cells, MPI + OpenMP.
 *
 *     mpirun -np 4 ./stencil3d [N [steps]]        (128 cells a side, 100 steps)
 *
 * Processes form a grid of three dimensions, each with a block of cells and a layer of halo cells
 * around it. A step
 *   1. exchanges the halo: the master packs six faces, sends and receives without blocking, unpacks;
 *   2. sweeps: the threads share the planes of the block;
 *   3. sets the cells beyond the wall of the cube to zero, by the master alone;
 *   4. every fifth step: adds up the change of all processes.
 * Each phase is timed by every process. The signature stencil3d.toml describes the same program.
 *
 * It checks its own result: u = sin(a x) sin(a y) sin(a z) with a = pi / (N + 1) is an eigenvector
 * of the sweep, so after k steps the exact values are the first ones times lambda to the power k.
 */
#define _POSIX_C_SOURCE 200112L
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define DAMPING 0.8      /* weight of the neighbours' mean */
#define CHECK_EVERY 5    /* steps between two sums over all processes */
#define TOLERANCE 1e-12  /* largest error of a cell, relative to the largest exact value, */
#define ROUNDING 4e-16   /* and what a step may add to it: two roundings */

enum phase { HALO, SWEEP, WALL, RESIDUAL, PHASES };
static const char *const phase_name[PHASES] = {"halo", "sweep", "wall", "residual"};

struct block {
    MPI_Comm grid;
    int rank, processes;
    int extent[3], place[3];     /* processes along each dimension, and this one among them */
    int neighbour[3][2];         /* MPI_PROC_NULL beyond the wall */
    long n[3], first[3];         /* cells of this block, and the number of its first one */
    long stride[3];              /* of the array with its halo */
    double *now, *next;
    double *buffer[3][2][2];     /* dimension, side, 0 to send and 1 to receive */
};

static void fail(const struct block *b, const char *what) {
    if (b->rank == 0) fprintf(stderr, "stencil3d: %s\n", what);
    MPI_Finalize();
    exit(2);
}

static void *allocate(size_t doubles) {
    void *memory = malloc((doubles ? doubles : 1) * sizeof(double));
    if (memory == NULL) {
        fprintf(stderr, "stencil3d: no memory for %zu MB\n", doubles * sizeof(double) / 1000000);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static long cell(const struct block *b, long i, long j, long k) {
    return i * b->stride[0] + j * b->stride[1] + k;
}

static long face_cells(const struct block *b, int dim) {
    return b->n[(dim + 1) % 3] * b->n[(dim + 2) % 3];
}

/* Messages that the busiest process sends along a dimension. */
static int sides(int extent) { return extent == 1 ? 0 : extent == 2 ? 1 : 2; }

/* The grid whose blocks have the least surface to their neighbours; of equal ones, the one with the
 * most processes along the last dimension, since ranks that follow each other share a node. */
static void best_extent(int processes, int extent[3]) {
    double least = INFINITY;
    for (int p0 = 1; p0 <= processes; p0++) {
        if (processes % p0) continue;
        for (int p1 = 1; p1 <= processes / p0; p1++) {
            if (processes / p0 % p1) continue;
            int p2 = processes / p0 / p1;
            double surface = (double)(sides(p0) * p0 + sides(p1) * p1 + sides(p2) * p2);
            if (surface < least) {
                least = surface;
                extent[0] = p0, extent[1] = p1, extent[2] = p2;
            }
        }
    }
}

static void set_up(struct block *b, long cells) {
    MPI_Comm_size(MPI_COMM_WORLD, &b->processes);
    MPI_Comm_rank(MPI_COMM_WORLD, &b->rank);
    best_extent(b->processes, b->extent);
    int periodic[3] = {0, 0, 0};
    MPI_Cart_create(MPI_COMM_WORLD, 3, b->extent, periodic, 0, &b->grid);
    MPI_Cart_coords(b->grid, b->rank, 3, b->place);
    for (int d = 0; d < 3; d++) {
        if (b->extent[d] > cells) fail(b, "more processes than cells along a dimension");
        MPI_Cart_shift(b->grid, d, 1, &b->neighbour[d][0], &b->neighbour[d][1]);
        long share = cells / b->extent[d], more = cells % b->extent[d], p = b->place[d];
        b->n[d] = share + (p < more);
        b->first[d] = p * share + (p < more ? p : more);
    }
    b->stride[2] = 1;
    b->stride[1] = b->n[2] + 2;
    b->stride[0] = b->stride[1] * (b->n[1] + 2);
    size_t all = (size_t)b->stride[0] * (b->n[0] + 2);
    b->now = allocate(all);
    b->next = allocate(all);
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++)
            for (int way = 0; way < 2; way++) b->buffer[d][side][way] = allocate(face_cells(b, d));
}

static double exact(const struct block *b, long cells, long i, long j, long k) {
    double a = acos(-1.0) / (cells + 1);
    return sin(a * (b->first[0] + i)) * sin(a * (b->first[1] + j)) * sin(a * (b->first[2] + k));
}

/* By the threads that will work on the cells, so that memory is near them. Halo cells are not a
 * number until they have been exchanged or set: a forgotten one shows. */
static void initialise(struct block *b, long cells) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < b->n[0] + 2; i++)
        for (long j = 0; j < b->n[1] + 2; j++)
            for (long k = 0; k < b->n[2] + 2; k++) {
                int inside = i >= 1 && i <= b->n[0] && j >= 1 && j <= b->n[1] && k >= 1 && k <= b->n[2];
                b->now[cell(b, i, j, k)] = inside ? exact(b, cells, i, j, k) : NAN;
                b->next[cell(b, i, j, k)] = NAN;
            }
}

/* Copies a face of the block (inner = 1) or of its halo (inner = 0) to or from a buffer. */
static void copy_face(struct block *b, int dim, int side, int inner, double *buffer, int unpack) {
    int e = dim == 0 ? 1 : 0, f = dim == 2 ? 1 : 2;
    long at = side ? b->n[dim] + (inner ? 0 : 1) : (inner ? 1 : 0);
    double *face = b->now + at * b->stride[dim];
    for (long x = 1; x <= b->n[e]; x++)
        for (long y = 1; y <= b->n[f]; y++) {
            double *value = face + x * b->stride[e] + y * b->stride[f];
            if (unpack)
                *value = *buffer++;
            else
                *buffer++ = *value;
        }
}

static void exchange_halo(struct block *b) {
    MPI_Request requests[12];
    int count = 0;
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++)
            MPI_Irecv(b->buffer[d][side][1], (int)face_cells(b, d), MPI_DOUBLE, b->neighbour[d][side],
                      2 * d + side, b->grid, &requests[count++]);
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++) {
            if (b->neighbour[d][side] != MPI_PROC_NULL) copy_face(b, d, side, 1, b->buffer[d][side][0], 0);
            MPI_Isend(b->buffer[d][side][0], (int)face_cells(b, d), MPI_DOUBLE, b->neighbour[d][side],
                      2 * d + 1 - side, b->grid, &requests[count++]);
        }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++)
            if (b->neighbour[d][side] != MPI_PROC_NULL) copy_face(b, d, side, 0, b->buffer[d][side][1], 1);
}

/* The cells beyond the wall are zero. */
static void set_wall(struct block *b) {
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++) {
            if (b->neighbour[d][side] != MPI_PROC_NULL) continue;
            int e = d == 0 ? 1 : 0, f = d == 2 ? 1 : 2;
            double *face = b->now + (side ? b->n[d] + 1 : 0) * b->stride[d];
            for (long x = 1; x <= b->n[e]; x++)
                for (long y = 1; y <= b->n[f]; y++) face[x * b->stride[e] + y * b->stride[f]] = 0.0;
        }
}

/* One sweep from `now` to `next`; returns the sum of the squares of the changes. */
static double sweep(struct block *b) {
    const double *restrict now = b->now;
    double *restrict next = b->next;
    long s0 = b->stride[0], s1 = b->stride[1];
    double change = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : change)
    for (long i = 1; i <= b->n[0]; i++)
        for (long j = 1; j <= b->n[1]; j++) {
            long row = cell(b, i, j, 0);
            /* without it one addition would wait for the one before, cell after cell */
#pragma omp simd reduction(+ : change)
            for (long c = row + 1; c <= row + b->n[2]; c++) {
                double sum = now[c - s0] + now[c + s0] + now[c - s1] + now[c + s1] + now[c - 1] + now[c + 1];
                double step = DAMPING * (sum / 6.0 - now[c]);
                next[c] = now[c] + step;
                change += step * step;
            }
        }
    double *swap = b->now;
    b->now = b->next;
    b->next = swap;
    return change;
}

static double largest_error(const struct block *b, long cells, double factor) {
    double worst = 0.0;
#pragma omp parallel for schedule(static) reduction(max : worst)
    for (long i = 1; i <= b->n[0]; i++)
        for (long j = 1; j <= b->n[1]; j++)
            for (long k = 1; k <= b->n[2]; k++) {
                double error = fabs(b->now[cell(b, i, j, k)] - factor * exact(b, cells, i, j, k));
                if (!(error <= worst)) worst = error; /* keeps a NaN too */
            }
    return worst;
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

static long argument(const struct block *b, int count, char **words, int index, long otherwise) {
    if (count <= index) return otherwise;
    char *end;
    long value = strtol(words[index], &end, 10);
    if (*end != '\0' || value < 1) fail(b, "usage: stencil3d [CELLS [STEPS]], both whole numbers above 0");
    return value;
}

int main(int count, char **words) {
    int provided;
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &provided);
    struct block b = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    long cells = argument(&b, count, words, 1, 128), steps = argument(&b, count, words, 2, 100);
    if (count > 3) fail(&b, "usage: stencil3d [CELLS [STEPS]], both whole numbers above 0");
    set_up(&b, cells);
    initialise(&b, cells);

    double spent[PHASES] = {0}, change = 0.0;
    double *taken = allocate((size_t)steps), *most_taken = allocate((size_t)steps);
    MPI_Barrier(b.grid);
    double begin = MPI_Wtime();
    for (long step = 0; step < steps; step++) {
        double t0 = MPI_Wtime();
        exchange_halo(&b);
        double t1 = MPI_Wtime();
        set_wall(&b);
        double t2 = MPI_Wtime();
        double mine = sweep(&b);
        double t3 = MPI_Wtime();
        if ((step + 1) % CHECK_EVERY == 0) MPI_Allreduce(&mine, &change, 1, MPI_DOUBLE, MPI_SUM, b.grid);
        double t4 = MPI_Wtime();
        taken[step] = t4 - t0;
        spent[HALO] += t1 - t0, spent[WALL] += t2 - t1, spent[SWEEP] += t3 - t2, spent[RESIDUAL] += t4 - t3;
    }
    double runtime = MPI_Wtime() - begin, slowest, mean[PHASES], most[PHASES];
    MPI_Reduce(&runtime, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, b.grid);
    MPI_Reduce(taken, most_taken, (int)steps, MPI_DOUBLE, MPI_MAX, 0, b.grid);
    MPI_Reduce(spent, mean, PHASES, MPI_DOUBLE, MPI_SUM, 0, b.grid);
    MPI_Reduce(spent, most, PHASES, MPI_DOUBLE, MPI_MAX, 0, b.grid);

    double lambda = 1.0 - DAMPING * (1.0 - cos(acos(-1.0) / (cells + 1)));
    double factor = pow(lambda, (double)steps), error = largest_error(&b, cells, factor), worst;
    /* MPI_MAX need not keep a NaN */
    error = isnan(error) ? INFINITY : error;
    MPI_Allreduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, b.grid);
    int correct = worst <= (TOLERANCE + ROUNDING * (double)steps) * factor;
    if (b.rank == 0) {
        printf("stencil3d  N=%ld steps=%ld  %d processes x %d threads  grid %dx%dx%d\n", cells, steps,
               b.processes, omp_get_max_threads(), b.extent[0], b.extent[1], b.extent[2]);
        printf("%-10s %12.6f s\n", "runtime", slowest);
        printf("%-10s %12.9f s a step\n", "tenth", tenth(most_taken, steps));
        for (int p = 0; p < PHASES; p++)
            printf("%-10s %12.6f s on average, %.6f s at most\n", phase_name[p], mean[p] / b.processes, most[p]);
        printf("%-10s largest error %.1e: %s\n", "check", worst, correct ? "correct" : "WRONG");
    }
    MPI_Finalize();
    return correct ? 0 : 1;
}
