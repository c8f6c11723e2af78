/* One thread waits for a lock that another one gives away only after it has seen it sleep: a wait of
 * a millisecond at least. */
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int waiter;

static void until_it_sleeps(int thread)
{
    char path[64], line[256], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    while (state != 'S') {
        FILE *file = fopen(path, "r");
        if (!file || !fgets(line, sizeof line, file) || sscanf(line, "%*d (%*[^)]) %c", &state) != 1)
            state = 0;
        if (file)
            fclose(file);
    }
}

int main(void)
{
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            omp_set_lock(&lock);
#pragma omp barrier
        if (omp_get_thread_num() == 1) {
            waiter = (int)syscall(SYS_gettid);
            omp_set_lock(&lock);
            omp_unset_lock(&lock);
        } else {
            while (!waiter)
                ;
            until_it_sleeps(waiter);
            nanosleep(&(struct timespec){0, 1000000}, NULL);
            omp_unset_lock(&lock);
        }
    }
    return 0;
}
