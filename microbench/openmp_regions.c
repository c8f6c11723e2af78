/* OpenMP's constructs that copy no array: regions and what is inside of them, passages, tasks. */
#define _POSIX_C_SOURCE 200809L
#include <omp.h>

#include "clock.h"
#include "delay.h"
#include "openmp_constructs.h"

/* --- Regions and what is inside of them ------------------------------------------------------- */

double parallel(void *state, long inner)
{
    const struct setting *setting = state;
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
#pragma omp parallel num_threads((int)setting->team.threads)
        delay(DELAY);
    }
    return clock_now() - start;
}

double parallel_for(void *state, long inner)
{
    const struct setting *setting = state;
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
#pragma omp parallel for num_threads((int)setting->team.threads)
        for (long j = 0; j < setting->team.threads; j++)
            delay(DELAY);
    }
    return clock_now() - start;
}

double reduction(void *state, long inner)
{
    const struct setting *setting = state;
    long sum = 0;
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
#pragma omp parallel num_threads((int)setting->team.threads) reduction(+ : sum)
        {
            delay(DELAY);
            sum += 1;
        }
    }
    double seconds = clock_now() - start;
    __asm__ volatile("" : : "g"(sum));
    return seconds;
}

double for_(void *state, long inner)
{
    struct setting *setting = state;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        team_begin(&setting->team);
        for (long i = 0; i < inner; i++) {
#pragma omp for
            for (long j = 0; j < setting->team.threads; j++)
                delay(DELAY);
        }
        team_end(&setting->team);
    }
    return team_seconds(&setting->team);
}

double barrier(void *state, long inner)
{
    struct setting *setting = state;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        team_begin(&setting->team);
        for (long i = 0; i < inner; i++) {
            delay(DELAY);
#pragma omp barrier
        }
        team_end(&setting->team);
    }
    return team_seconds(&setting->team);
}

double single(void *state, long inner)
{
    struct setting *setting = state;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        team_begin(&setting->team);
        for (long i = 0; i < inner; i++) {
#pragma omp single
            delay(DELAY);
        }
        team_end(&setting->team);
    }
    return team_seconds(&setting->team);
}

double master(void *state, long inner)
{
    struct setting *setting = state;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        team_begin(&setting->team);
        for (long i = 0; i < inner; i++) {
#pragma omp master
            delay(DELAY);
        }
        team_end(&setting->team);
    }
    return team_seconds(&setting->team);
}

double sections(void *state, long inner)
{
    struct setting *setting = state;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        team_begin(&setting->team);
        for (long i = 0; i < inner; i++) {
#pragma omp sections
            {
#pragma omp section
                delay(DELAY);
#pragma omp section
                delay(DELAY);
#pragma omp section
                delay(DELAY);
#pragma omp section
                delay(DELAY);
            }
        }
        team_end(&setting->team);
    }
    return team_seconds(&setting->team);
}

/* --- Passages that all threads crowd at ------------------------------------------------------- */

/* Every thread passes equally often; the batch's time is put on `inner` passages in all. */
static long share_of(const struct setting *setting, long inner)
{
    return (inner + setting->team.threads - 1) / setting->team.threads;
}

static double for_inner(const struct setting *setting, long inner)
{
    double done = (double)share_of(setting, inner) * (double)setting->team.threads;
    return team_contended_seconds(&setting->team) * (double)inner / done;
}

double critical(void *state, long inner)
{
    struct setting *setting = state;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        long share = share_of(setting, inner);
        team_begin(&setting->team);
        for (long i = 0; i < share; i++) {
#pragma omp critical
            delay(DELAY);
        }
        team_end(&setting->team);
    }
    return for_inner(setting, inner);
}

double lock(void *state, long inner)
{
    struct setting *setting = state;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        long share = share_of(setting, inner);
        team_begin(&setting->team);
        for (long i = 0; i < share; i++) {
            omp_set_lock(&lock);
            delay(DELAY);
            omp_unset_lock(&lock);
        }
        team_end(&setting->team);
    }
    omp_destroy_lock(&lock);
    return for_inner(setting, inner);
}

double atomic(void *state, long inner)
{
    struct setting *setting = state;
    double sum = 0;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        long share = share_of(setting, inner);
        double value = 1;
        team_begin(&setting->team);
        for (long i = 0; i < share; i++) {
#pragma omp atomic
            sum += value;
            value *= 1 + 1e-15;
        }
        team_end(&setting->team);
    }
    __asm__ volatile("" : : "g"(&sum) : "memory");
    return for_inner(setting, inner);
}

double ordered(void *state, long inner)
{
    const struct setting *setting = state;
    double start = clock_now();
#pragma omp parallel for ordered schedule(static, 1) num_threads((int)setting->team.threads)
    for (long i = 0; i < inner; i++) {
#pragma omp ordered
        delay(DELAY);
    }
    return clock_now() - start;
}

/* --- Tasks ------------------------------------------------------------------------------------ */

double task(void *state, long inner)
{
    struct setting *setting = state;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        team_begin(&setting->team);
        for (long i = 0; i < inner; i++) {
#pragma omp task
            delay(DELAY);
        }
#pragma omp barrier
        team_end(&setting->team);
    }
    return team_seconds(&setting->team);
}

double taskwait(void *state, long inner)
{
    struct setting *setting = state;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        team_begin(&setting->team);
        for (long i = 0; i < inner; i++) {
#pragma omp task
            delay(DELAY);
#pragma omp taskwait
        }
        team_end(&setting->team);
    }
    return team_seconds(&setting->team);
}
