/* What all parts of the tracer share: see state.h and process.h. */
#define _GNU_SOURCE
#include <pthread.h>

#include "process.h"

#define MOST_HOOKS 8

_Atomic int phase = DORMANT;
_Atomic int watch = 0;
void (*put_counters)(struct thread *, uint64_t time);
void (*put_rest)(struct thread *, uint64_t time);
__thread struct thread *this_thread __attribute__((tls_model("initial-exec")));
struct process process;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hook *start_hooks[MOST_HOOKS];

void process_lock(void)
{
    pthread_mutex_lock(&lock);
}

bool process_try_lock(void)
{
    struct timespec patience;
    clock_gettime(CLOCK_REALTIME, &patience);
    patience.tv_sec += 1;
    return pthread_mutex_timedlock(&lock, &patience) == 0;
}

bool process_is_free(void)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return false;
    pthread_mutex_unlock(&lock);
    return true;
}

void process_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void at_start(hook *one)
{
    int i = 0;
    while (i < MOST_HOOKS - 1 && start_hooks[i])
        i++;
    start_hooks[i] = one;
}

void run_start_hooks(void)
{
    for (int i = 0; i < MOST_HOOKS && start_hooks[i]; i++)
        start_hooks[i]();
}
