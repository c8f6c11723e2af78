/* What it costs threads to write where others write too.
 *
 *   false_sharing threads=T padded=0|1
 *        every thread adds 1 to a number of its own, again and again. padded=0: the numbers lie
 *        side by side, eight in a line, so that an update takes the line from another core;
 *        padded=1: each lies in lines of its own. One operation is one update of each thread
 *   line_transfer threads=2 distance=near|far
 *        two threads, bound to the nearest two cores of this process or to its first and the one
 *        farthest from it, answer each other through one word. One operation is one way: the time
 *        until a store is seen by the other core
 *
 *   line_takeover threads=2 bytes=B distance=near|far
 *        the two threads write, in turn, a byte in each line of the same B bytes, every one of which
 *        the other has written just before. One operation is one pass of one thread; work = its
 *        lines. A core asks for many at once: expect far less for each than line_transfer
 *
 * The numbers of false_sharing are doubles, such as the partial sums that programs keep in an array with a slot for
 * each thread, and go through memory every time (volatile), as they do there when the compiler
 * cannot keep the slot in a register. A core hides much of the way of the line behind its store
 * buffer, in the program as here: expect less than line_transfer. */
#define _POSIX_C_SOURCE 200809L
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpus.h"
#include "node.h"
#include "team.h"

struct counters {
    struct team team;
    volatile double *slots;
    long stride;
};

static double update(void *state, long inner)
{
    struct counters *counters = state;
#pragma omp parallel num_threads((int)counters->team.threads)
    {
        volatile double *own = counters->slots + counters->stride * omp_get_thread_num();
        team_begin(&counters->team);
        for (long i = 0; i < inner; i++)
            *own += 1;
        team_end(&counters->team);
    }
    return team_contended_seconds(&counters->team);
}

static struct result run_false_sharing(const struct job *job, const struct plan *plan,
                                       void *context)
{
    (void)context;
    struct result result = {0};
    struct counters counters = {0};
    if (team_open(&counters.team, job_integer(job, "threads", 1), &result))
        return result;
    /* Two lines apart: neighbouring lines are fetched in pairs by some processors. */
    counters.stride = job_integer(job, "padded", 0) ? 2 * LINE / (long)sizeof *counters.slots : 1;
    size_t bytes = (size_t)(counters.stride * counters.team.threads) * sizeof *counters.slots;
    double *slots = aligned_reserve(bytes);
    if (slots) {
        memset(slots, 0, bytes);
        counters.slots = slots;
        result.batches = measure(plan, update, NULL, &counters);
    } else {
        result = result_absent("not enough memory for the counters of %ld threads", counters.team.threads);
    }
    free(slots);
    team_close(&counters.team);
    return result;
}

struct exchange {
    struct team team;
    int cpus[2];
    atomic_long *word;
    volatile char *block; /* what is written before an answer, a byte in each of its lines */
    long bytes, line;
};

/* Thread 0 writes odd numbers, thread 1 the even ones after them: two operations per round. */
static double answer(void *state, long inner)
{
    struct exchange *exchange = state;
    long rounds = (inner + 1) / 2;
    atomic_store(exchange->word, 0);
#pragma omp parallel num_threads(2)
    {
        int thread = omp_get_thread_num();
        struct pinned before = pin_to(exchange->cpus[thread]);
        team_begin(&exchange->team);
        for (long i = 0; i < rounds; i++) {
            while (atomic_load_explicit(exchange->word, memory_order_acquire) != 2 * i + thread)
                ;
            for (long at = 0; at < exchange->bytes; at += exchange->line)
                exchange->block[at] = (char)i;
            atomic_store_explicit(exchange->word, 2 * i + thread + 1, memory_order_release);
        }
        team_end(&exchange->team);
        unpin(before);
    }
    return team_seconds(&exchange->team) * (double)inner / (double)(2 * rounds);
}

static struct result exchanged(const struct job *job, const struct plan *plan, long bytes)
{
    struct result result = {0};
    struct exchange exchange = {.bytes = bytes, .line = line_bytes()};
    struct cpus cpus = cpus_read();
    int far = strcmp(job_text(job, "distance", "near"), "far") == 0;
    int none = cpus_on_two_cores(&cpus, far, exchange.cpus);
    cpus_free(&cpus);
    if (none < 0)
        return result_absent("this process may use only one core");
    if (none > 0)
        return result_absent("all usable cores are equally near");
    if (team_open(&exchange.team, 2, &result))
        return result;
    exchange.word = aligned_reserve(2 * LINE);
    char *block = bytes ? aligned_reserve((size_t)bytes) : NULL;
    if (block)
        memset(block, 0, (size_t)bytes);
    exchange.block = block;
    result.work = (double)((bytes + exchange.line - 1) / exchange.line);
    struct plan bound = *plan;
    bound.threads = 2;
    bound.cpus = exchange.cpus;
    if (exchange.word && (block || !bytes))
        result.batches = measure(&bound, answer, NULL, &exchange);
    else
        result = result_absent("not enough memory for the lines of two threads");
    free(block);
    free(exchange.word);
    team_close(&exchange.team);
    return result;
}

static struct result run_line_transfer(const struct job *job, const struct plan *plan,
                                       void *context)
{
    (void)context;
    return exchanged(job, plan, 0);
}

static struct result run_line_takeover(const struct job *job, const struct plan *plan,
                                       void *context)
{
    (void)context;
    return exchanged(job, plan, job_integer(job, "bytes", 0));
}

static const char *const DISTANCES[] = {"near", "far", NULL};
static const struct key FALSE_SHARING_KEYS[] = {
    {"threads", INTEGER, 1, 1, 65536, NULL},
    {"padded", INTEGER, 1, 0, 1, NULL},
    {0},
};
static const struct key LINE_TRANSFER_KEYS[] = {
    {"threads", INTEGER, 0, 2, 2, NULL},
    {"distance", WORD, 1, 0, 0, DISTANCES},
    {0},
};
static const struct key LINE_TAKEOVER_KEYS[] = {
    {"threads", INTEGER, 0, 2, 2, NULL},
    {"bytes", INTEGER, 1, LINE, 1L << 30, NULL},
    {"distance", WORD, 1, 0, 0, DISTANCES},
    {0},
};

const struct job_kind sharing_jobs[] = {
    {"false_sharing", FALSE_SHARING_KEYS, NULL, run_false_sharing},
    {"line_transfer", LINE_TRANSFER_KEYS, NULL, run_line_transfer},
    {"line_takeover", LINE_TAKEOVER_KEYS, NULL, run_line_takeover},
    {0},
};
