/* Noise: a fixed quantum of work again and again.
 *
 *   quantum    every batch is one quantum of about 1 ms (at 3 GHz) on one thread
 *
 * On an undisturbed core all quanta take the same time; what the longer ones take more is what the
 * operating system, the hypervisor and others took away (the fixed work quantum test). The quantum
 * is a fixed number of steps rather than a fixed time, so that several launches, and two machines,
 * measure the same work. Nothing is stopped early and nothing thrown away: the rare long quanta are
 * the result. */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include "delay.h"
#include "node.h"

static const long QUANTUM = 750000; /* steps of delay(), about 3 million cycles */

static double quanta(void *unused, long inner)
{
    (void)unused;
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        delay(QUANTUM);
    return clock_now() - start;
}

static struct result run_quantum(const struct job *job, const struct plan *plan, void *context)
{
    (void)job;
    (void)context;
    struct plan all = *plan;
    all.inner = 1;
    all.precision = 0;
    all.threads = 0; /* it does not wait for others, who are a part of the noise */
    return (struct result){.batches = measure(&all, quanta, NULL, NULL)};
}

const struct job_kind noise_jobs[] = {
    {"quantum", NULL, NULL, run_quantum},
    {0},
};
