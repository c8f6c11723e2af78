/* What a core does per cycle, and how many cycles a second it has.
 *
 *   clock threads=T   a chain of integer additions, each of which waits for the one before: one
 *                     cycle each on every processor this is meant for. work = additions (cycles)
 *                     per operation, so that the clock is work/seconds, with T cores busy. The
 *                     addend is in a register: some processors fold additions of constants away
 *   fma threads=T     independent multiply-adds that fill the vector units; work = floating-point
 *                     operations of all threads in one operation
 *   loads, stores     8-byte words read from, or written to, an array in the first-level cache by
 *                     vector instructions; work = words per operation
 *   loop              one iteration of an empty counted loop
 *   instructions      a plain numerical loop none of whose iterations waits for another: two loads,
 *                     two floating-point additions, a store, and the sum, comparison and jump that
 *                     control it; work = instructions per operation. Many cores take a comparison
 *                     and its jump as one, as they do in the loops of programs
 *   dependent operation=add|multiply|divide
 *                     a chain of floating-point operations, each of which waits for the one before;
 *                     work = operations per operation, so that clock * seconds/work is the latency
 *   in_flight         one iteration of a loop with a long chain of dependent operations, independent
 *                     of those before and after; reference = the same where each waits for the one
 *                     before; work = instructions of an iteration, so that work reference/seconds
 *                     instructions are under way at a time, at least
 *   smt threads=2 shared=0|1
 *                     the fma rate of two threads on one core (shared=1) or on two (shared=0)
 *
 * One operation is a block of some thousand instructions, so that counting blocks costs nothing. */
#define _POSIX_C_SOURCE 200809L
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cpus.h"
#include "node.h"
#include "team.h"
#include "vectors.h"

enum { ADDITIONS = 1024, REPEATS = 64, WORDS = 1024 /* 8 KiB: within any first-level cache */ };
enum { DEPENDENT = 256 };
enum { TURNS = 256, INSTRUCTIONS = 8 * TURNS };
/* As long as an iteration of a stencil takes, or longer. Additions and multiplications keep about 12
 * chains going at once, so that up to some 350 instructions can be seen under way. */
enum { CHAINED = 24, CHAIN_INSTRUCTIONS = CHAINED + 5 /* load, division, store; count and jump */ };

/* Additions and multiplications as they stand, none of them made one. */
#ifdef __clang__
#define AS_WRITTEN
#pragma STDC FP_CONTRACT OFF
#else
#define AS_WRITTEN __attribute__((optimize("fp-contract=off")))
#endif

struct core {
    struct team team;
    struct vectors vectors;
    double *words;
    int cpus[2]; /* smt: where the threads go */
};

#define ADD                                                                                        \
    x += addend;                                                                                   \
    __asm__ volatile("" : "+r"(x));
#define ADD_8 ADD ADD ADD ADD ADD ADD ADD ADD
#define ADD_64 ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 ADD_8

static void add_up(long blocks)
{
    unsigned long x = 0, addend = 3;
    __asm__ volatile("" : "+r"(addend)); /* unknown to the compiler */
    for (long i = 0; i < blocks * (ADDITIONS / 64); i++) {
        ADD_64
    }
}

static double clock_batch(void *state, long inner)
{
    struct core *core = state;
#pragma omp parallel num_threads((int)core->team.threads)
    {
        team_begin(&core->team);
        add_up(inner);
        team_end(&core->team);
    }
    return team_contended_seconds(&core->team);
}

static double fma_batch(void *state, long inner)
{
    struct core *core = state;
#pragma omp parallel num_threads((int)core->team.threads)
    {
        team_begin(&core->team);
        core->vectors.fma(inner * REPEATS);
        team_end(&core->team);
    }
    return team_contended_seconds(&core->team);
}

static double smt_batch(void *state, long inner)
{
    struct core *core = state;
#pragma omp parallel num_threads((int)core->team.threads)
    {
        struct pinned before = pin_to(core->cpus[omp_get_thread_num()]);
        team_begin(&core->team);
        core->vectors.fma(inner * REPEATS);
        team_end(&core->team);
        unpin(before);
    }
    return team_contended_seconds(&core->team);
}

static double load_batch(void *state, long inner)
{
    const struct core *core = state;
    double start = clock_now();
    core->vectors.load(core->words, WORDS, inner);
    return clock_now() - start;
}

static double store_batch(void *state, long inner)
{
    const struct core *core = state;
    double start = clock_now();
    core->vectors.store(core->words, WORDS, inner);
    return clock_now() - start;
}

static double loop_batch(void *state, long inner)
{
    (void)state;
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        __asm__ volatile("");
    return clock_now() - start;
}

static double instructions_batch(void *state, long inner)
{
    /* far enough apart that no load waits for a store that only looks alike */
    volatile double *words = ((const struct core *)state)->words;
    double term = words[0], start = clock_now();
    long turn = 0, turns = inner * TURNS;
    do {
        words[200] = words[8] + term + words[16];
        turn++;
        __asm__ volatile("" : "+r"(turn)); /* a sum of its own, and a comparison */
    } while (turn != turns);
    return clock_now() - start;
}

#define CHAINED_BY(name, operation)                                                                \
    AS_WRITTEN static double name##_batch(void *state, long inner)                                 \
    {                                                                                              \
        double *words = ((const struct core *)state)->words, start = clock_now();                  \
        double other = words[1] + 1e-9 * words[2], value = words[3]; /* stays within its range */  \
        for (long i = 0; i < inner * DEPENDENT; i++)                                               \
            value = value operation other;                                                         \
        words[8] = value;                                                                          \
        return clock_now() - start;                                                                \
    }
CHAINED_BY(add, +)
CHAINED_BY(multiply, *)
CHAINED_BY(divide, /)

#define LATER                                                                                      \
    value += term;                                                                                 \
    value *= factor;
#define LATER_8 LATER LATER LATER LATER
#define CHAIN(words)                                                                               \
    value /= divisor;                                                                              \
    LATER_8 LATER_8 LATER_8 /* CHAINED of them */                                                  \
        (words)[8] = value;                                                                        \
    __asm__ volatile("" : : : "memory"); /* one iteration after the other, none by vectors */

AS_WRITTEN static double in_flight_batch(void *state, long inner)
{
    double *words = ((const struct core *)state)->words;
    double term = words[1], divisor = words[3], factor = 1 / divisor;
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
        double value = words[0];
        CHAIN(words)
    }
    return clock_now() - start;
}

AS_WRITTEN static double chain_batch(void *state, long inner)
{
    double *words = ((const struct core *)state)->words;
    double term = words[1], divisor = words[3], factor = 1 / divisor;
    double value = words[0], start = clock_now();
    for (long i = 0; i < inner; i++) {
        CHAIN(words)
    }
    return clock_now() - start;
}

static double flop(const struct core *core)
{
    return 2.0 * FMA_CHAINS * REPEATS * (double)core->vectors.doubles * (double)core->team.threads;
}

/* One thread's array of words, filled: reading untouched memory would read one and the same page of
 * zeros. */
static int reserve_words(struct core *core, struct result *absent)
{
    core->words = aligned_reserve(WORDS * sizeof *core->words);
    for (long i = 0; core->words && i < WORDS; i++)
        core->words[i] = (double)i;
    if (!core->words)
        *absent =
            result_absent("not enough memory for an array of %d bytes", (int)(WORDS * sizeof *core->words));
    return core->words ? 0 : -1;
}

static struct result run_clock(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    struct core core = {0};
    struct result result = {0};
    if (team_open(&core.team, job_integer(job, "threads", 1), &result))
        return result;
    result.batches = measure(plan, clock_batch, NULL, &core);
    result.work = ADDITIONS;
    team_close(&core.team);
    return result;
}

static struct result run_fma(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    struct core core = {.vectors = widest_vectors()};
    struct result result = {0};
    if (team_open(&core.team, job_integer(job, "threads", 1), &result))
        return result;
    result.batches = measure(plan, fma_batch, NULL, &core);
    result.work = flop(&core);
    team_close(&core.team);
    return result;
}

static struct result run_words(const struct plan *plan, batch_fn batch, batch_fn reference,
                               double work)
{
    struct core core = {.vectors = widest_vectors()};
    struct result result = {0};
    if (reserve_words(&core, &result))
        return result;
    result.batches = measure(plan, batch, reference, &core);
    result.work = work;
    free(core.words);
    return result;
}

static struct result run_loads(const struct job *job, const struct plan *plan, void *context)
{
    (void)job;
    (void)context;
    return run_words(plan, load_batch, NULL, WORDS);
}

static struct result run_stores(const struct job *job, const struct plan *plan, void *context)
{
    (void)job;
    (void)context;
    return run_words(plan, store_batch, NULL, WORDS);
}

static struct result run_loop(const struct job *job, const struct plan *plan, void *context)
{
    (void)job;
    (void)context;
    return (struct result){.batches = measure(plan, loop_batch, NULL, NULL)};
}

static struct result run_instructions(const struct job *job, const struct plan *plan, void *context)
{
    (void)job;
    (void)context;
    return run_words(plan, instructions_batch, NULL, INSTRUCTIONS);
}

static const char *const OPERATIONS[] = {"add", "multiply", "divide", NULL};

static struct result run_dependent(const struct job *job, const struct plan *plan, void *context)
{
    static const batch_fn BATCHES[] = {add_batch, multiply_batch, divide_batch};
    const char *asked = job_text(job, "operation", OPERATIONS[0]);
    int which = 0;
    (void)context;
    while (strcmp(OPERATIONS[which], asked))
        which++;
    return run_words(plan, BATCHES[which], NULL, DEPENDENT);
}

static struct result run_in_flight(const struct job *job, const struct plan *plan, void *context)
{
    (void)job;
    (void)context;
    return run_words(plan, in_flight_batch, chain_batch, CHAIN_INSTRUCTIONS);
}

static struct result run_smt(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    struct core core = {.vectors = widest_vectors()};
    struct result result = {0};
    struct cpus cpus = cpus_read();
    int siblings[2];
    if (cpus_on_one_core(&cpus, siblings)) {
        result = result_absent(
            "no two hardware threads of a core are usable: no SMT, or not for this process");
    } else if (job_integer(job, "shared", 0)) {
        core.cpus[0] = siblings[0];
        core.cpus[1] = siblings[1];
    } else if (cpus_on_two_cores(&cpus, 0, core.cpus)) {
        result = result_absent("this process may use only one core");
    }
    cpus_free(&cpus);
    if (result.absent[0] || team_open(&core.team, 2, &result))
        return result;
    struct plan shared = *plan;
    shared.threads = 0; /* two threads of a core are never left to themselves */
    result.batches = measure(&shared, smt_batch, NULL, &core);
    result.work = flop(&core);
    team_close(&core.team);
    return result;
}

static const struct key THREADS_KEY[] = {{"threads", INTEGER, 1, 1, 65536, NULL}, {0}};
static const struct key OPERATION_KEY[] = {{"operation", WORD, 1, 0, 0, OPERATIONS}, {0}};
static const struct key SMT_KEYS[] = {
    {"threads", INTEGER, 0, 2, 2, NULL},
    {"shared", INTEGER, 1, 0, 1, NULL},
    {0},
};

const struct job_kind core_jobs[] = {
    {"clock", THREADS_KEY, NULL, run_clock},
    {"fma", THREADS_KEY, NULL, run_fma},
    {"loads", NULL, NULL, run_loads},
    {"stores", NULL, NULL, run_stores},
    {"loop", NULL, NULL, run_loop},
    {"instructions", NULL, NULL, run_instructions},
    {"dependent", OPERATION_KEY, NULL, run_dependent},
    {"in_flight", NULL, NULL, run_in_flight},
    {"smt", SMT_KEYS, NULL, run_smt},
    {0},
};
