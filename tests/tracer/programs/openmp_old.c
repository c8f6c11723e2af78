/* A parallel region as GCC compiled it before version 4.9, and a fork in one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void GOMP_parallel_start(void (*)(void *), void *, unsigned);
void GOMP_parallel_loop_dynamic_start(void (*)(void *), void *, unsigned, long, long, long, long);
_Bool GOMP_loop_dynamic_next(long *, long *);
void GOMP_loop_end_nowait(void);
void GOMP_parallel_end(void);
void GOMP_barrier(void);
int omp_get_thread_num(void);

static void region(void *data)
{
    __atomic_fetch_add((long *)data, 1, __ATOMIC_RELAXED);
    GOMP_barrier();
}

static void loop(void *data)
{
    long from, to;
    while (GOMP_loop_dynamic_next(&from, &to))
        __atomic_fetch_add((long *)data, to - from, __ATOMIC_RELAXED);
    GOMP_loop_end_nowait();
}

static void forks(void *data)
{
    if (omp_get_thread_num() == 0) {
        pid_t child = fork();
        if (child == 0) {
            *(long *)data = 0;
            return;
        }
        int status = 0;
        waitpid(child, &status, 0);
        __atomic_fetch_add((long *)data, WEXITSTATUS(status), __ATOMIC_RELAXED);
    }
}

int main(int argc, char **argv)
{
    long sum = 0;
    GOMP_parallel_start(region, &sum, 2);
    region(&sum);
    GOMP_parallel_end();
    GOMP_parallel_loop_dynamic_start(loop, &sum, 2, 0, 100, 1, 10);
    loop(&sum);
    GOMP_parallel_end();
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        GOMP_parallel_start(forks, &sum, 2);
        forks(&sum);
        if (sum == 0)
            _exit(7); /* the child, back from its part */
        GOMP_parallel_end();
    }
    printf("%ld\n", sum);
    return 0;
}
