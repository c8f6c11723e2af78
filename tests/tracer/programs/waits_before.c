/* A thread waits for a lock while another one enters the first parallel region of the program. */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "sleeping.h"

#define ENOUGH 5e-3 /* s of the processor, for whom waiting is turning in a loop */

static omp_lock_t lock;
static sem_t is_held;
static _Atomic bool wants;
static clockid_t of_waiter;

static double used(void)
{
    struct timespec time;
    clock_gettime(of_waiter, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *hold(void *ignored)
{
    omp_set_lock(&lock);
    sem_post(&is_held);
    while (!wants)
        ;
    double begin = used();
    while (!sleeps((int)getpid()) && used() < begin + ENOUGH)
        ;
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
    }
    omp_unset_lock(&lock);
    return ignored;
}

int main(void)
{
    pthread_t holder;
    pthread_getcpuclockid(pthread_self(), &of_waiter);
    omp_init_lock(&lock);
    sem_init(&is_held, 0, 0);
    pthread_create(&holder, NULL, hold, NULL);
    sem_wait(&is_held);
    wants = true;
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
    pthread_join(holder, NULL);
    return 0;
}
