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
#include "team.h"

enum { DELAY = 75 };       /* steps: 300 cycles, 0.1 us at 3 GHz */
enum { SHORT_DELAY = 10 }; /* of an iteration whose schedule is fixed */
enum { PER_THREAD = 128 }; /* iterations, or chunks, of a scheduled loop, as in EPCC's schedbench */
enum { SECTIONS = 4 };
enum { MOST_BYTES = 1 << 18 }; /* of a private array: it lies on the threads' stacks */

struct setting {
    struct team team;
    long doubles;           /* of the private array */
    long chunk;             /* 0: none given */
    long iterations, delay; /* of a scheduled loop, and the steps of each */
};

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

/* --- Regions and what is inside of them ------------------------------------------------------- */

static double parallel(void *state, long inner)
{
    const struct setting *setting = state;
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
#pragma omp parallel num_threads((int)setting->team.threads)
        delay(DELAY);
    }
    return clock_now() - start;
}

static double parallel_for(void *state, long inner)
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

static double reduction(void *state, long inner)
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

static double for_(void *state, long inner)
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

static double barrier(void *state, long inner)
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

static double single(void *state, long inner)
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

static double master(void *state, long inner)
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

static double sections(void *state, long inner)
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

static double critical(void *state, long inner)
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

static double lock(void *state, long inner)
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

static double atomic(void *state, long inner)
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

static double ordered(void *state, long inner)
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

static double task(void *state, long inner)
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

static double taskwait(void *state, long inner)
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

/* --- Arrays of the threads' own --------------------------------------------------------------- */

/* The array has to be there, whole, when the work begins. */
static void work_with(double *array)
{
    array[0] = 1;
    __asm__ volatile("" : : "r"(array) : "memory");
    delay(DELAY);
}

static double private_(void *state, long inner)
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

static double firstprivate(void *state, long inner)
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

static double lastprivate(void *state, long inner)
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
#define QUOTED(text) #text

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
        for (size_t i = 0; i < sizeof FIXED_SIZES / sizeof *FIXED_SIZES; i++)
            if (FIXED_SIZES[i].doubles == setting.doubles)
                with = strcmp(construct->name, "copyin") == 0 ? FIXED_SIZES[i].copyin
                       : strcmp(construct->name, "threadprivate") == 0
                           ? FIXED_SIZES[i].threadprivate
                           : FIXED_SIZES[i].copyprivate;
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
