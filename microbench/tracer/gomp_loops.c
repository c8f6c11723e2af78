/* Work sharing of libgomp: loops whose iterations are handed out while they run, and sections.
 *
 * Loops with a static schedule are compiled into arithmetic and cannot be seen; those that are also
 * `ordered` are handed out like the others.
 */
#define _GNU_SOURCE
#include "gomp.h"

typedef unsigned long long wide;

#define HAND_OUT(name, PARAMETERS, ARGUMENTS) \
    EXPORTED bool name PARAMETERS             \
    {                                         \
        KNOW(name);                           \
        gomp_enter(SCHEDULING);               \
        bool more = next ARGUMENTS;           \
        gomp_leave(SCHEDULING);               \
        return more;                          \
    }

#define BEGIN_LOOP(name, PARAMETERS, ARGUMENTS) \
    EXPORTED bool name PARAMETERS               \
    {                                           \
        KNOW(name);                             \
        single_ends();                          \
        gomp_enter(SCHEDULING);                 \
        bool more = next ARGUMENTS;             \
        gomp_leave(SCHEDULING);                 \
        return more;                            \
    }

/* clang-format off */
#define NEXT_CHUNK(name)                                                  \
    HAND_OUT(GOMP_loop_##name##_next, (long *from, long *to), (from, to)) \
    HAND_OUT(GOMP_loop_ull_##name##_next, (wide *from, wide *to), (from, to))

/* With a chunk that is known, and with a schedule from the environment. */
#define CHUNKED(name)                                                                \
    NEXT_CHUNK(name)                                                                 \
    BEGIN_LOOP(GOMP_loop_##name##_start,                                             \
               (long first, long last, long step, long chunk, long *from, long *to), \
               (first, last, step, chunk, from, to))                                 \
    BEGIN_LOOP(GOMP_loop_ull_##name##_start,                                         \
               (bool up, wide first, wide last, wide step,                           \
                wide chunk, wide *from, wide *to),                                   \
               (up, first, last, step, chunk, from, to))
#define GIVEN(name)                                                      \
    NEXT_CHUNK(name)                                                     \
    BEGIN_LOOP(GOMP_loop_##name##_start,                                 \
               (long first, long last, long step, long *from, long *to), \
               (first, last, step, from, to))                            \
    BEGIN_LOOP(GOMP_loop_ull_##name##_start,                             \
               (bool up, wide first, wide last, wide step,               \
                wide *from, wide *to),                                   \
               (up, first, last, step, from, to))

CHUNKED(static)
CHUNKED(dynamic)
CHUNKED(guided)
CHUNKED(nonmonotonic_dynamic)
CHUNKED(nonmonotonic_guided)
CHUNKED(ordered_static)
CHUNKED(ordered_dynamic)
CHUNKED(ordered_guided)
GIVEN(runtime)
GIVEN(ordered_runtime)
GIVEN(nonmonotonic_runtime)
GIVEN(maybe_nonmonotonic_runtime)

/* With reductions of tasks, from GCC 9 on. */
#define REDUCING(name)                                                                             \
    BEGIN_LOOP(GOMP_loop_##name,                                                                   \
               (long first, long last, long step, long schedule, long chunk, long *from, long *to, \
                uintptr_t *reductions, void **memory),                                             \
               (first, last, step, schedule, chunk, from, to, reductions, memory))                 \
    BEGIN_LOOP(GOMP_loop_ull_##name,                                                               \
               (bool up, wide first, wide last, wide step,                                         \
                long schedule, wide chunk, wide *from,                                             \
                wide *to, uintptr_t *reductions, void **memory),                                   \
               (up, first, last, step, schedule, chunk, from, to, reductions, memory))

REDUCING(start)
REDUCING(ordered_start)

/* ordered(n): iterations that depend on others. The waits for those have a variable number of
 * arguments and cannot be passed on. */
#define DEPENDING(name)                                                          \
    BEGIN_LOOP(GOMP_loop_doacross_##name##_start,                                \
               (unsigned loops, long *counts, long chunk, long *from, long *to), \
               (loops, counts, chunk, from, to))                                 \
    BEGIN_LOOP(GOMP_loop_ull_doacross_##name##_start,                            \
               (unsigned loops, wide *counts, wide chunk,                        \
                wide *from, wide *to),                                           \
               (loops, counts, chunk, from, to))

DEPENDING(static)
DEPENDING(dynamic)
DEPENDING(guided)
BEGIN_LOOP(GOMP_loop_doacross_runtime_start, (unsigned loops, long *counts, long *from, long *to),
           (loops, counts, from, to))
BEGIN_LOOP(GOMP_loop_ull_doacross_runtime_start,
           (unsigned loops, wide *counts, wide *from,
            wide *to),
           (loops, counts, from, to))
BEGIN_LOOP(GOMP_loop_doacross_start,
           (unsigned loops, long *counts, long schedule, long chunk, long *from, long *to,
            uintptr_t *reductions, void **memory),
           (loops, counts, schedule, chunk, from, to, reductions, memory))
BEGIN_LOOP(GOMP_loop_ull_doacross_start,
           (unsigned loops, wide *counts, long schedule, wide chunk,
            wide *from, wide *to, uintptr_t *reductions, void **memory),
           (loops, counts, schedule, chunk, from, to, reductions, memory))
/* clang-format on */

EXPORTED void GOMP_loop_end(void)
{
    KNOW(GOMP_loop_end);
    gomp_enter(IMPLICIT_BARRIER);
    next();
    gomp_leave(IMPLICIT_BARRIER);
}

EXPORTED bool GOMP_loop_end_cancel(void)
{
    KNOW(GOMP_loop_end_cancel);
    gomp_enter(IMPLICIT_BARRIER);
    bool cancelled = next();
    gomp_leave(IMPLICIT_BARRIER);
    return cancelled;
}

/* A thread's share of sections begins with its first request. `parallel sections` has no start. */
static void sections_begin(void)
{
    struct member *here = openmp.here;
    if (!here || here->sections || !gomp_here())
        return;
    here->sections = true;
    gomp_enter(SECTIONS);
}

static void sections_end(void)
{
    struct member *here = openmp.here;
    if (!here || !here->sections)
        return;
    here->sections = false;
    gomp_leave(SECTIONS);
}

EXPORTED unsigned GOMP_sections_start(unsigned count)
{
    KNOW(GOMP_sections_start);
    single_ends();
    sections_begin();
    gomp_enter(SCHEDULING);
    unsigned which = next(count);
    gomp_leave(SCHEDULING);
    return which;
}

EXPORTED unsigned GOMP_sections2_start(unsigned count, uintptr_t *reductions, void **memory)
{
    KNOW(GOMP_sections2_start);
    single_ends();
    sections_begin();
    gomp_enter(SCHEDULING);
    unsigned which = next(count, reductions, memory);
    gomp_leave(SCHEDULING);
    return which;
}

EXPORTED unsigned GOMP_sections_next(void)
{
    KNOW(GOMP_sections_next);
    sections_begin();
    gomp_enter(SCHEDULING);
    unsigned which = next();
    gomp_leave(SCHEDULING);
    return which;
}

EXPORTED void GOMP_sections_end(void)
{
    KNOW(GOMP_sections_end);
    sections_end();
    gomp_enter(IMPLICIT_BARRIER);
    next();
    gomp_leave(IMPLICIT_BARRIER);
}

EXPORTED bool GOMP_sections_end_cancel(void)
{
    KNOW(GOMP_sections_end_cancel);
    sections_end();
    gomp_enter(IMPLICIT_BARRIER);
    bool cancelled = next();
    gomp_leave(IMPLICIT_BARRIER);
    return cancelled;
}

EXPORTED void GOMP_sections_end_nowait(void)
{
    KNOW(GOMP_sections_end_nowait);
    sections_end();
    next();
}
