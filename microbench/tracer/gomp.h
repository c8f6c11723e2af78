/* OpenMP by wrapping the entries of libgomp, which has no tool interface. They are what GCC
 * compiles OpenMP into since version 4.2. LLVM's runtime has them as well.
 *
 * Whatever may run code of the program (a region, a barrier that carries out tasks) may also fork,
 * so the thread is looked up again after it: in the child there is none.
 */
#ifndef POPMODEL_GOMP_H
#define POPMODEL_GOMP_H

#include "entries.h"
#include "openmp.h"

enum gomp_use { UNDECIDED, RECORDED, PASSED_ON };
extern _Atomic int gomp_use;

/* Whether these calls are to be recorded: not where the runtime has taken us for its tool. */
void gomp_decide(void);

static inline bool gomp_recorded(void)
{
    if (UNLIKELY(atomic_load_explicit(&gomp_use, memory_order_relaxed) == UNDECIDED))
        gomp_decide();
    return atomic_load_explicit(&gomp_use, memory_order_relaxed) == RECORDED;
}

static inline struct thread *gomp_here(void)
{
    return LIKELY(gomp_recorded()) ? thread_here() : NULL;
}

/* Number of this thread in its team, by the runtime that has the wrapped entries. */
extern int (*gomp_thread_number)(void);

/* For the meta file. */
extern const char *gomp_library;

static inline void gomp_enter(enum construct construct)
{
    struct thread *t = gomp_here();
    if (t)
        construct_enter(t, construct, 0);
}

static inline void gomp_leave(enum construct construct)
{
    struct thread *t = gomp_here();
    if (t)
        construct_leave(t, construct, 0);
}

#endif
