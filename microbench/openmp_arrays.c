/* OpenMP's clauses that give every thread an array of its own. */
#define _POSIX_C_SOURCE 200809L
#include <omp.h>
#include <string.h>

#include "clock.h"
#include "delay.h"
#include "openmp_constructs.h"

/* The array has to be there, whole, when the work begins. */
static void work_with(double *array)
{
    array[0] = 1;
    __asm__ volatile("" : : "r"(array) : "memory");
    delay(DELAY);
}

double private_(void *state, long inner)
{
    const struct setting *setting = state;
    double array[setting->doubles];
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
#pragma omp parallel num_threads((int)setting->team.threads) private(array)
        work_with(array);
    }
    return clock_now() - start;
}

double firstprivate(void *state, long inner)
{
    const struct setting *setting = state;
    double array[setting->doubles];
    memset(array, 0, sizeof array);
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
#pragma omp parallel num_threads((int)setting->team.threads) firstprivate(array)
        work_with(array);
    }
    return clock_now() - start;
}

double lastprivate(void *state, long inner)
{
    const struct setting *setting = state;
    double array[setting->doubles];
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
#pragma omp parallel for num_threads((int)setting->team.threads) lastprivate(array)
        for (long j = 0; j < setting->team.threads; j++)
            work_with(array);
        __asm__ volatile("" : : "r"(array) : "memory");
    }
    return clock_now() - start;
}

/* Threadprivate arrays live as long as the program, and copyprivate admits none of variable length:
 * their sizes are fixed when this is compiled. */
#define OF_FIXED_SIZE(doubles)                                                                     \
    static double own_##doubles[doubles];                                                          \
    _Pragma(QUOTED(omp threadprivate(own_##doubles))) static double threadprivate_##doubles(       \
        void *state, long inner)                                                                   \
    {                                                                                              \
        const struct setting *setting = state;                                                     \
        double start = clock_now();                                                                \
        for (long i = 0; i < inner; i++) {                                                         \
            _Pragma(QUOTED(omp parallel num_threads((int)setting->team.threads)))                  \
                work_with(own_##doubles);                                                          \
        }                                                                                          \
        return clock_now() - start;                                                                \
    }                                                                                              \
    static double copyin_##doubles(void *state, long inner)                                        \
    {                                                                                              \
        const struct setting *setting = state;                                                     \
        double start = clock_now();                                                                \
        for (long i = 0; i < inner; i++) {                                                         \
            _Pragma(QUOTED(omp parallel num_threads((int)setting->team.threads)                    \
                               copyin(own_##doubles))) work_with(own_##doubles);                   \
        }                                                                                          \
        return clock_now() - start;                                                                \
    }                                                                                              \
    static double copyprivate_##doubles(void *state, long inner)                                   \
    {                                                                                              \
        const struct setting *setting = state;                                                     \
        double array[doubles];                                                                     \
        double start = clock_now();                                                                \
        for (long i = 0; i < inner; i++) {                                                         \
            _Pragma(QUOTED(omp parallel num_threads((int)setting->team.threads) private(array)))   \
            {                                                                                      \
                _Pragma(QUOTED(omp single copyprivate(array))) work_with(array);                   \
                __asm__ volatile("" : : "r"(array) : "memory");                                    \
            }                                                                                      \
        }                                                                                          \
        return clock_now() - start;                                                                \
    }
OF_FIXED_SIZE(1)
OF_FIXED_SIZE(8)
OF_FIXED_SIZE(64)
OF_FIXED_SIZE(512)
OF_FIXED_SIZE(4096)
OF_FIXED_SIZE(32768)

static const struct {
    long doubles;
    batch_fn threadprivate, copyin, copyprivate;
} FIXED_SIZES[] = {
    {1, threadprivate_1, copyin_1, copyprivate_1},
    {8, threadprivate_8, copyin_8, copyprivate_8},
    {64, threadprivate_64, copyin_64, copyprivate_64},
    {512, threadprivate_512, copyin_512, copyprivate_512},
    {4096, threadprivate_4096, copyin_4096, copyprivate_4096},
    {32768, threadprivate_32768, copyin_32768, copyprivate_32768},
};

batch_fn with_fixed_array(const char *name, long doubles)
{
    for (size_t i = 0; i < sizeof FIXED_SIZES / sizeof *FIXED_SIZES; i++)
        if (FIXED_SIZES[i].doubles == doubles)
            return strcmp(name, "copyin") == 0          ? FIXED_SIZES[i].copyin
                   : strcmp(name, "threadprivate") == 0 ? FIXED_SIZES[i].threadprivate
                                                        : FIXED_SIZES[i].copyprivate;
    return NULL;
}
