/* What OpenMP's constructs cost.
 *
 *   construct name=NAME threads=T [bytes=B] [chunk=C]
 *
 * The method is that of EPCC's OpenMP microbenchmarks (J. M. Bull, "Measuring synchronisation and
 * scheduling overheads in OpenMP", EWOMP 1999; J. M. Bull, F. Reid, N. McDonnell, "A microbenchmark
 * suite for OpenMP tasks", IWOMP 2012): a construct around a short piece of work is timed, and the
 * same work without the construct, the reference. The overhead is the difference; both are
 * reported, because the difference can come out negative where the construct costs next to nothing.
 *
 * The work is delay(DELAY), about 0.1 us as in EPCC's syncbench. What is one operation:
 *
 *   parallel, parallel_for, reduction   one region, opened and closed; a loop has one iteration per
 *                                       thread
 *   for, barrier, single, master        one construct met by all threads of a region
 *   sections                            one construct of four sections, in such a region
 *   critical, lock, atomic, ordered     one passage, counted over all threads: the time between two
 *                                       passages of a section that all threads crowd at
 *   task, taskwait                      one task of each thread (with a taskwait behind it)
 *   private ... threadprivate           one region whose threads have an array of B bytes each
 *   schedule_static without chunk       one loop of 128 iterations per thread
 *   schedule_* with chunk               one chunk as its thread sees it: a loop of 128 chunks per
 *                                       thread, its time over the number of chunks that a thread
 *                                       gets; chunk=1 where a schedule needs one
 *
 * Different from EPCC in two points. Where all threads work, the reference is the work of all
 * threads at once, not of one thread alone: cores that are all busy run slower, and a difference of
 * 0.1 us would show that as overhead. And a schedule with chunks is compared with the same loop
 * under schedule(static), so that the difference is what handing out a chunk costs, without the
 * loop around it: EPCC reports the loop, but what a model multiplies by the number of chunks is
 * this. */
#define _POSIX_C_SOURCE 200809L
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "delay.h"
#include "node.h"
#include "openmp_constructs.h"

enum { SHORT_DELAY = 10 }; /* steps of an iteration whose schedule is fixed */
enum { PER_THREAD = 128 }; /* iterations, or chunks, of a scheduled loop, as in EPCC's schedbench */
enum { MOST_BYTES = 1 << 18 }; /* of a private array: it lies on the threads' stacks */

/* --- References ------------------------------------------------------------------------------- */

static double work_of_one(void *state, long inner)
{
    (void)state;
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        delay(DELAY);
    return clock_now() - start;
}

static double work_of_all(void *state, long inner)
{
    struct setting *setting = state;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        team_begin(&setting->team);
        for (long i = 0; i < inner; i++)
            delay(DELAY);
        team_end(&setting->team);
    }
    return team_seconds(&setting->team);
}

/* As many sections, one after the other, as one of the threads has to do. */
static double work_of_sections(void *state, long inner)
{
    const struct setting *setting = state;
    long each = (SECTIONS + setting->team.threads - 1) / setting->team.threads;
    return work_of_one(state, inner * each);
}

static double work_of_adding(void *state, long inner)
{
    (void)state;
    double sum = 0, value = 1;
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
        sum += value;
        value *= 1 + 1e-15;
    }
    __asm__ volatile("" : : "g"(&sum) : "memory");
    return clock_now() - start;
}

static double work_of_a_schedule(void *state, long inner)
{
    struct setting *setting = state;
#pragma omp parallel num_threads((int)setting->team.threads)
    {
        team_begin(&setting->team);
        for (long i = 0; i < inner * setting->iterations / setting->team.threads; i++)
            delay(setting->delay);
        team_end(&setting->team);
    }
    return team_seconds(&setting->team);
}

/* --- Schedules -------------------------------------------------------------------------------- */

/* A loop whose iterations are shared as the clause says. */
#define SCHEDULED(NAME, CLAUSE)                                           \
    static double NAME(void *state, long inner)                           \
    {                                                                     \
        struct setting *setting = state;                                  \
        _Pragma(QUOTED(omp parallel num_threads((int)setting->team.threads))) \
        {                                                                 \
            team_begin(&setting->team);                                   \
            for (long i = 0; i < inner; i++) {                            \
                _Pragma(QUOTED(omp for CLAUSE))                           \
                for (long j = 0; j < setting->iterations; j++)            \
                    delay(setting->delay);                                \
            }                                                             \
            team_end(&setting->team);                                     \
        }                                                                 \
        return team_seconds(&setting->team);                              \
    }

SCHEDULED(schedule_static, schedule(static))
SCHEDULED(schedule_static_chunk, schedule(static, setting->chunk))
SCHEDULED(schedule_dynamic, schedule(dynamic, setting->chunk))
SCHEDULED(schedule_guided, schedule(guided, setting->chunk))

/* Chunks of a loop over the number of threads. Guided: every chunk is the remaining iterations over
 * the number of threads, as OpenMP's specification has it, and at least `chunk`. */
static double chunks_per_thread(const struct setting *setting, int guided)
{
    long threads = setting->team.threads, left = setting->iterations, chunks = 0;
    while (left > 0) {
        long size = guided ? (left + threads - 1) / threads : 0;
        left -= size > setting->chunk ? size : setting->chunk;
        chunks++;
    }
    return (double)chunks / (double)threads;
}

/* --- The job ---------------------------------------------------------------------------------- */

enum family { PLAIN, ARRAY, FIXED_ARRAY, SCHEDULE };

struct construct {
    const char *name;
    batch_fn with, without;
    enum family family;
};

static const struct construct CONSTRUCTS[] = {
    {"parallel", parallel, work_of_all, PLAIN},
    {"for", for_, work_of_all, PLAIN},
    {"parallel_for", parallel_for, work_of_all, PLAIN},
    {"barrier", barrier, work_of_all, PLAIN},
    {"single", single, work_of_one, PLAIN},
    {"master", master, work_of_one, PLAIN},
    {"critical", critical, work_of_one, PLAIN},
    {"lock", lock, work_of_one, PLAIN},
    {"atomic", atomic, work_of_adding, PLAIN},
    {"ordered", ordered, work_of_one, PLAIN},
    {"reduction", reduction, work_of_all, PLAIN},
    {"sections", sections, work_of_sections, PLAIN},
    {"task", task, work_of_all, PLAIN},
    {"taskwait", taskwait, work_of_all, PLAIN},
    {"private", private_, work_of_all, ARRAY},
    {"firstprivate", firstprivate, work_of_all, ARRAY},
    {"lastprivate", lastprivate, work_of_all, ARRAY},
    {"copyprivate", NULL, work_of_one, FIXED_ARRAY},
    {"copyin", NULL, work_of_all, FIXED_ARRAY},
    {"threadprivate", NULL, work_of_all, FIXED_ARRAY},
    {"schedule_static", schedule_static, work_of_a_schedule, SCHEDULE},
    {"schedule_dynamic", schedule_dynamic, work_of_a_schedule, SCHEDULE},
    {"schedule_guided", schedule_guided, work_of_a_schedule, SCHEDULE},
};

static const struct construct *find_construct(const struct job *job)
{
    const char *name = job_text(job, "name", "");
    for (size_t i = 0; i < sizeof CONSTRUCTS / sizeof *CONSTRUCTS; i++)
        if (strcmp(CONSTRUCTS[i].name, name) == 0)
            return &CONSTRUCTS[i];
    return NULL;
}

static const char *check(const struct job *job)
{
    const struct construct *construct = find_construct(job);
    if (!construct)
        return "unknown name; known: parallel, for, parallel_for, barrier, single, master, "
               "critical, lock, atomic, "
               "ordered, reduction, sections, task, taskwait, private, firstprivate, lastprivate, "
               "copyprivate, copyin, "
               "threadprivate, schedule_static, schedule_dynamic, schedule_guided";
    if (job_text(job, "bytes", NULL) && construct->family != ARRAY &&
        construct->family != FIXED_ARRAY)
        return "bytes= is the size of a private array and is only valid with private, firstprivate, "
               "lastprivate, copyprivate, copyin and threadprivate";
    if (job_text(job, "chunk", NULL) && construct->family != SCHEDULE)
        return "chunk= is only valid with schedule_static, schedule_dynamic and schedule_guided";
    return NULL;
}

static void per_chunk(struct batches *batches, double chunks)
{
    for (long i = 0; i < batches->n; i++) {
        batches->seconds[i] /= chunks;
        batches->reference[i] /= chunks;
    }
    batches->inner = (long)((double)batches->inner * chunks + 0.5);
}

/* Chooses the loop of a schedule and its work. Returns 1 if an operation is a chunk. */
static int set_schedule(struct setting *setting, batch_fn *with, batch_fn *without)
{
    long threads = setting->team.threads;
    setting->iterations = PER_THREAD * threads;
    setting->delay = SHORT_DELAY;
    if (*with == schedule_static && setting->chunk == 0)
        return 0;
    if (*with == schedule_static)
        *with = schedule_static_chunk;
    else /* Chunks are handed out at run time. A chunk of 0.1 us times the number of threads keeps
            the counter free most of the time: what is measured is the way to it, not the queue
            before it. */
        setting->delay = DELAY * threads;
    *without = schedule_static;
    setting->chunk = setting->chunk ? setting->chunk : 1;
    setting->iterations *= setting->chunk;
    setting->delay = setting->delay > setting->chunk ? setting->delay / setting->chunk : 1;
    return 1;
}

static struct result run_construct(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    const struct construct *construct = find_construct(job);
    batch_fn with = construct->with, without = construct->without;
    struct setting setting = {.chunk = job_integer(job, "chunk", 0)};
    struct result result = {0};
    setting.doubles = (job_integer(job, "bytes", sizeof(double)) + (long)sizeof(double) - 1) /
                      (long)sizeof(double);

    if (construct->family == FIXED_ARRAY) {
        with = with_fixed_array(construct->name, setting.doubles);
        if (!with)
            return result_absent(
                "%s is only compiled for arrays of 8, 64, 512, 4096, 32768 and 262144 bytes",
                construct->name);
    }
    if (team_open(&setting.team, job_integer(job, "threads", 1), &result))
        return result;
    int of_chunks = construct->family == SCHEDULE && set_schedule(&setting, &with, &without);
    result.batches = measure(plan, with, without, &setting);
    if (of_chunks)
        per_chunk(&result.batches, chunks_per_thread(&setting, with == schedule_guided));
    team_close(&setting.team);
    return result;
}

static const struct key CONSTRUCT_KEYS[] = {
    {"name", WORD, 1, 0, 0, NULL},
    {"threads", INTEGER, 1, 1, 65536, NULL},
    {"bytes", INTEGER, 0, 1, MOST_BYTES, NULL},
    {"chunk", INTEGER, 0, 1, PER_THREAD, NULL},
    {0},
};

const struct job_kind construct_jobs[] = {
    {"construct", CONSTRUCT_KEYS, check, run_construct},
    {0},
};
