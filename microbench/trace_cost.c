/* What recording costs on this machine: popmodel-trace-cost prints ns of a record, of a lock that is free
 * and of a critical section, each a lowest and a highest value.
 *
 * The loops do what the tracer does around a call of MPI (tracer/call.h) or a lock (tracer/guards.h), in
 * a file of the directory that POPMODEL_TRACE_DIR names. That file grows: the pages that it takes are
 * half of what a record costs. The lowest value is that of a thread that does nothing else; the highest
 * that of one whose own data have driven the tracer's out of the caches in between.
 *
 * Times are those of the processor, not of the clock: others may be using it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/guards.h"

#define ROUNDS 4
#define LINE 64
#define MEMORY ((size_t)16 << 20) /* more than the caches of one core */
#define TOUCHED 64                /* lines of it between two calls */

typedef void operation(void);

static unsigned char *memory;
static size_t at;
static volatile unsigned sink;

/* What a program does between two calls. */
static void work(void)
{
    unsigned sum = 0;
    for (int i = 0; i < TOUCHED; i++) {
        sum += memory[at];
        memory[at] = (unsigned char)sum;
        at = (at + 37 * LINE) % MEMORY;
    }
    sink = sum;
}

static void nothing(void)
{
}

static void call(void)
{
    struct thread *t = thread_here();
    room(t, 16);
    put(t, now(), ENTER, 1, 1, 0, 0);
    room(t, 8);
    put(t, now(), LEAVE, 1, 0, 0, 0);
}

static void lock(void)
{
    struct thread *t = thread_here();
    if (guards_summed())
        guard_taken(t, LOCKS, 1);
    guard_ends(t, LOCKS, 1);
    guard_ended(t, LOCKS, 1);
}

static void section(void)
{
    struct thread *t = thread_here();
    lock_wanted(t);
    guard_got(t, CRITICALS, 1);
    guard_ends(t, CRITICALS, 1);
    guard_ended(t, CRITICALS, 1);
}

static double processor_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static double once(operation *one, operation *between, int times)
{
    double begin = processor_time();
    for (int i = 0; i < times; i++) {
        one();
        between();
    }
    return (processor_time() - begin) / times;
}

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Median over rounds, which alternate with rounds of what is done in between alone. */
static double cost(operation *one, operation *between, int times)
{
    double each[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double alone = once(nothing, between, times);
        each[round] = once(one, between, times) - alone;
    }
    qsort(each, ROUNDS, sizeof *each, compare);
    return (each[ROUNDS / 2 - 1] + each[ROUNDS / 2]) / 2;
}

/* Calls: times is such that a round fills a window of the tracer. */
static bool print(const char *name, operation *one, int times, double records)
{
    double low = cost(one, nothing, times) / records;
    double high = cost(one, work, times / 4) / records;
    return printf("%s %.2f %.2f\n", name, low, high > low ? high : low) > 0;
}

int main(void)
{
    struct thread *t = process_start() ? thread_here() : NULL;
    memory = malloc(MEMORY);
    if (!t || t->stopped || !memory)
        return 1;
    memset(memory, 1, MEMORY);
    /* The windows of a thread grow at first. */
    for (int i = 0; i < 40000; i++)
        call();
    bool told = print("record", call, 32768, 2) && print("lock", lock, 200000, 1) &&
                print("section", section, 50000, 1);
    process_end("exit");
    return t->stopped || !told;
}
