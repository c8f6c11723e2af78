/* Plays an OpenMP runtime of version 5.0, which knows one kind of implicit barrier only, and which
 * does not tell of task groups: two regions with a worker, whose part in the first ends when it is
 * needed for the second. Prints when it came to the end of the first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ompt.h"

typedef void parallel_begin(ompt_data_t *, const void *, ompt_data_t *, unsigned, int,
                            const void *);
typedef void parallel_end(ompt_data_t *, ompt_data_t *, int, const void *);
typedef void implicit_task(int, ompt_data_t *, ompt_data_t *, unsigned, unsigned, int);
typedef void sync_region(int, int, ompt_data_t *, ompt_data_t *, const void *);

#define IMPLICIT_TASK 2 /* flag */
#define REGIONS 2

static ompt_callback_t callbacks[64];
static pthread_barrier_t meet;
static ompt_data_t region;
static const char region_address, workshare_address;

static int set_callback(int event, ompt_callback_t callback)
{
    callbacks[event] = callback;
    return event == OMPT_SYNC_REGION_WAIT ? OMPT_SET_NEVER : 5;
}

static ompt_interface_fn_t lookup(const char *name)
{
    return strcmp(name, "ompt_set_callback") == 0 ? (ompt_interface_fn_t)set_callback : NULL;
}

/* The work of one thread in a region: up to the barrier that ends it. */
static void part(unsigned number, ompt_data_t *task)
{
    implicit_task *implicit = (implicit_task *)callbacks[OMPT_IMPLICIT_TASK];
    sync_region *sync = (sync_region *)callbacks[OMPT_SYNC_REGION];
    const void *ends = number == 0 ? &region_address : NULL;
    implicit(OMPT_BEGIN, &region, task, 2, number, IMPLICIT_TASK);
    sync(OMPT_BARRIER_IMPLICIT, OMPT_BEGIN, &region, task, &workshare_address);
    pthread_barrier_wait(&meet);
    sync(OMPT_BARRIER_IMPLICIT, OMPT_END, &region, task, &workshare_address);
    sync(OMPT_BARRIER_IMPLICIT, OMPT_BEGIN, &region, task, ends);
}

static void leave(unsigned number, ompt_data_t *task)
{
    const void *ends = number == 0 ? &region_address : NULL;
    ((sync_region *)callbacks[OMPT_SYNC_REGION])(OMPT_BARRIER_IMPLICIT, OMPT_END, NULL, task, ends);
    ((implicit_task *)callbacks[OMPT_IMPLICIT_TASK])(OMPT_END, NULL, task, 0, number,
                                                     IMPLICIT_TASK);
}

static void *worker(void *unused)
{
    ompt_data_t task = {0};
    for (int i = 0; i < REGIONS; i++) {
        pthread_barrier_wait(&meet); /* the fork */
        if (i > 0)
            leave(1, &task);
        part(1, &task);
        pthread_barrier_wait(&meet); /* the join */
    }
    return unused;
}

int main(void)
{
    typedef ompt_start_tool_result_t *start_tool(unsigned, const char *);
    start_tool *start = (start_tool *)dlsym(RTLD_DEFAULT, "ompt_start_tool");
    ompt_start_tool_result_t *tool = start ? start(201811, "a runtime of 5.0") : NULL;
    if (!tool || !tool->initialize(lookup, 0, &tool->tool_data))
        return 1;
    pthread_t thread;
    pthread_barrier_init(&meet, NULL, 2);
    pthread_create(&thread, NULL, worker, NULL);
    for (int i = 0; i < REGIONS; i++) {
        ompt_data_t before = {0}, task = {0};
        ((parallel_begin *)callbacks[OMPT_PARALLEL_BEGIN])(&before, NULL, &region, 2, 0,
                                                           &region_address);
        pthread_barrier_wait(&meet);
        part(0, &task);
        pthread_barrier_wait(&meet);
        leave(0, &task);
        ((parallel_end *)callbacks[OMPT_PARALLEL_END])(&region, &before, 0, &region_address);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    pthread_join(thread, NULL);
    tool->finalize(&tool->tool_data);
    return 0;
}
