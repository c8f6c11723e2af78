/* One thread waits for a lock that another one gives away only after it has seen it sleep: a wait of
 * a millisecond at least. */
#define _GNU_SOURCE
#include <omp.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sleeping.h"

static _Atomic int waiter;

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
            while (!sleeps(waiter))
                ;
            nanosleep(&(struct timespec){0, 1000000}, NULL);
            omp_unset_lock(&lock);
        }
    }
    return 0;
}
