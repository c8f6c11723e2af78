/* Parallel regions of libgomp.
 *
 * Each has a function that the compiler made of its body. In its place the runtime gets one of
 * ours, which every thread of the team carries out: that is how its begin and end on each thread
 * are seen.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "gomp.h"
#include "meta.h"

typedef void body(void *);

struct region {
    body *body;
    void *data;
    int64_t id;
    int level;
};

/* Whether it is recorded. */
static bool begin(struct region *region, body *f, void *data, unsigned threads)
{
    struct thread *t = gomp_recorded() && process_start() ? thread_here() : NULL;
    if (!t)
        return false;
    window_check();
    if (UNLIKELY(watching() & CLOSED))
        return false;
    openmp_tell(BY_GOMP, gomp_library);
    function_number((void *)(uintptr_t)f);
    *region = (struct region){f, data, (int64_t)next_region(), team_level() + 1};
    region_begin(t, threads, region->id, (void *)(uintptr_t)f);
    return true;
}

static void end(const struct region *region)
{
    struct thread *t = thread_here();
    if (t)
        region_end(t, region->id, (void *)(uintptr_t)region->body);
}

static void begin_part(const struct region *region, struct member *member)
{
    struct thread *t = thread_here();
    *member = (struct member){.region = region->id,
                              .function = (void *)(uintptr_t)region->body,
                              .level = region->level,
                              .number = (unsigned)gomp_thread_number(),
                              .outer = openmp.here};
    if (t)
        member_begin(t, member);
    member->ended = !t;
    openmp.here = member;
}

static void end_part(struct member *member)
{
    struct thread *t = thread_here();
    if (t && !member->ended)
        member_end(t, member);
    openmp.here = member->outer;
}

static void part(void *argument)
{
    const struct region *region = argument;
    struct member member;
    begin_part(region, &member);
    region->body(region->data);
    end_part(&member);
}

/* CALL is with the function and data that stand in for those of the program. */
#define REGION(name, PARAMETERS, CALL)                     \
    EXPORTED void name PARAMETERS                          \
    {                                                      \
        KNOW(name);                                        \
        body *f = fn;                                      \
        void *d = data;                                    \
        struct region region;                              \
        bool recorded = begin(&region, fn, data, threads); \
        if (recorded) {                                    \
            f = part;                                      \
            d = &region;                                   \
        }                                                  \
        next CALL;                                         \
        if (recorded)                                      \
            end(&region);                                  \
    }

/* clang-format off */
#define LOOP (body *fn, void *data, unsigned threads, long first, long last, long step, \
              long chunk, unsigned flags)
#define LOOP_CALL (f, d, threads, first, last, step, chunk, flags)
#define RUNTIME_LOOP (body *fn, void *data, unsigned threads, long first, long last, long step, \
                      unsigned flags)
#define RUNTIME_LOOP_CALL (f, d, threads, first, last, step, flags)

REGION(GOMP_parallel, (body *fn, void *data, unsigned threads, unsigned flags),
       (f, d, threads, flags))
REGION(GOMP_parallel_sections,
       (body *fn, void *data, unsigned threads, unsigned count, unsigned flags),
       (f, d, threads, count, flags))
REGION(GOMP_parallel_loop_static, LOOP, LOOP_CALL)
REGION(GOMP_parallel_loop_dynamic, LOOP, LOOP_CALL)
REGION(GOMP_parallel_loop_guided, LOOP, LOOP_CALL)
REGION(GOMP_parallel_loop_nonmonotonic_dynamic, LOOP, LOOP_CALL)
REGION(GOMP_parallel_loop_nonmonotonic_guided, LOOP, LOOP_CALL)
REGION(GOMP_parallel_loop_runtime, RUNTIME_LOOP, RUNTIME_LOOP_CALL)
REGION(GOMP_parallel_loop_nonmonotonic_runtime, RUNTIME_LOOP, RUNTIME_LOOP_CALL)
REGION(GOMP_parallel_loop_maybe_nonmonotonic_runtime, RUNTIME_LOOP, RUNTIME_LOOP_CALL)
/* clang-format on */

EXPORTED unsigned GOMP_parallel_reductions(body *fn, void *data, unsigned threads, unsigned flags)
{
    KNOW(GOMP_parallel_reductions);
    struct region region;
    if (!begin(&region, fn, data, threads))
        return next(fn, data, threads, flags);
    unsigned result = next(part, &region, threads, flags);
    end(&region);
    return result;
}

/* Before GCC 4.9 the calling thread carried out its part itself, between two calls. */
struct started {
    struct region region;
    struct member member;
    bool recorded;
    struct started *outer;
};
static __thread struct started *started __attribute__((tls_model("initial-exec")));

static struct started *start(body *f, void *data, unsigned threads)
{
    struct started *s = gomp_recorded() ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return NULL;
    s->recorded = begin(&s->region, f, data, threads);
    s->outer = started;
    started = s;
    return s;
}

#define STARTED(name, PARAMETERS, CALL)               \
    EXPORTED void name PARAMETERS                     \
    {                                                 \
        KNOW(name);                                   \
        struct started *s = start(fn, data, threads); \
        body *f = fn;                                 \
        void *d = data;                               \
        if (s && s->recorded) {                       \
            f = part;                                 \
            d = &s->region;                           \
        }                                             \
        next CALL;                                    \
        if (s && s->recorded)                         \
            begin_part(&s->region, &s->member);       \
    }

/* clang-format off */
#define OLD_LOOP (body *fn, void *data, unsigned threads, long first, long last, long step, \
                  long chunk)
#define OLD_LOOP_CALL (f, d, threads, first, last, step, chunk)

STARTED(GOMP_parallel_start, (body *fn, void *data, unsigned threads), (f, d, threads))
STARTED(GOMP_parallel_sections_start, (body *fn, void *data, unsigned threads, unsigned count),
        (f, d, threads, count))
STARTED(GOMP_parallel_loop_static_start, OLD_LOOP, OLD_LOOP_CALL)
STARTED(GOMP_parallel_loop_dynamic_start, OLD_LOOP, OLD_LOOP_CALL)
STARTED(GOMP_parallel_loop_guided_start, OLD_LOOP, OLD_LOOP_CALL)
STARTED(GOMP_parallel_loop_runtime_start,
        (body *fn, void *data, unsigned threads, long first, long last, long step),
        (f, d, threads, first, last, step))
/* clang-format on */

EXPORTED void GOMP_parallel_end(void)
{
    KNOW(GOMP_parallel_end);
    struct started *s = started;
    if (!s) {
        next();
        return;
    }
    started = s->outer;
    if (s->recorded)
        end_part(&s->member);
    next();
    if (s->recorded)
        end(&s->region);
    free(s);
}
