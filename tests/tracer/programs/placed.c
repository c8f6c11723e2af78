/* Prints what /proc says of the CPUs that each thread may use: "placed RANK THREAD CPUS".
 *
 *     placed [steps [crash | quit | open | fail]]
 *
 * Steps such as 1.5s, of a program without MPI, are as many as last so long.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_thread_num(void) { return 0; }
#endif

static void say(int rank)
{
    char path[64], line[256], cpus[128] = "?";
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", syscall(SYS_gettid));
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Cpus_allowed_list: %127s", cpus) == 1)
            break;
    if (file)
        fclose(file);
    char text[256];
    int length = snprintf(text, sizeof text, "placed %d %d %s\n", rank, omp_get_thread_num(), cpus);
    ssize_t wrote = write(STDOUT_FILENO, text, (size_t)length);
    (void)wrote;
}

static double work(long n)
{
    volatile double sum = 0;
    for (long i = 0; i < n; i++)
        sum += 1e-3 * (double)i;
    return sum;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int count, char **words)
{
    int steps = count > 1 ? atoi(words[1]) : 20, rank = 0;
    const char *end = count > 2 ? words[2] : "";
    int is_timed = count > 1 && strchr(words[1], 's') != NULL;
    double until = is_timed ? seconds() + atof(words[1]) : 0;
#ifdef WITH_MPI
    int level;
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
    for (int step = 0; is_timed ? seconds() < until : step < steps; step++) {
#ifdef _OPENMP
#pragma omp parallel
#endif
        {
            if (step == 0)
                say(rank);
            work(20000);
        }
#ifdef WITH_MPI
        double mine = 1, sum;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#endif
    }
    if (strcmp(end, "crash") == 0)
        abort();
    if (strcmp(end, "quit") == 0)
        _exit(0);
#ifdef WITH_MPI
    if (strcmp(end, "open") != 0)
        MPI_Finalize();
#endif
    return strcmp(end, "fail") == 0 ? 7 : 0;
}
