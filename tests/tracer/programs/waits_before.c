/* A thread waits for a lock while another one enters the first parallel region of the program. */
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static omp_lock_t lock;
static sem_t is_held;

static void *hold(void *ignored)
{
    const struct timespec while_it_waits = {0, 100000000};
    omp_set_lock(&lock);
    sem_post(&is_held);
    nanosleep(&while_it_waits, NULL);
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
    omp_init_lock(&lock);
    sem_init(&is_held, 0, 0);
    pthread_create(&holder, NULL, hold, NULL);
    sem_wait(&is_held);
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
    pthread_join(holder, NULL);
    return 0;
}
