/* Where threads of libgomp wait for each other.
 *
 * GCC compiles the barrier at the end of a static loop or of a single construct into the same call
 * as an explicit one: all of these are recorded as explicit.
 */
#define _GNU_SOURCE
#include "gomp.h"
#include "guards.h"

EXPORTED void GOMP_barrier(void)
{
    KNOW(GOMP_barrier);
    single_ends();
    gomp_enter(BARRIER);
    next();
    gomp_leave(BARRIER);
}

EXPORTED bool GOMP_barrier_cancel(void)
{
    KNOW(GOMP_barrier_cancel);
    single_ends();
    gomp_enter(BARRIER);
    bool cancelled = next();
    gomp_leave(BARRIER);
    return cancelled;
}

EXPORTED void GOMP_taskwait(void)
{
    KNOW(GOMP_taskwait);
    gomp_enter(TASKWAIT);
    next();
    gomp_leave(TASKWAIT);
}

EXPORTED void GOMP_taskwait_depend(void **depend)
{
    KNOW(GOMP_taskwait_depend);
    gomp_enter(TASKWAIT);
    next(depend);
    gomp_leave(TASKWAIT);
}

EXPORTED void GOMP_taskgroup_end(void)
{
    KNOW(GOMP_taskgroup_end);
    gomp_enter(TASKGROUP);
    next();
    gomp_leave(TASKGROUP);
}

EXPORTED void GOMP_ordered_start(void)
{
    KNOW(GOMP_ordered_start);
    gomp_enter(ORDERED);
    next();
    gomp_leave(ORDERED);
}

EXPORTED bool GOMP_single_start(void)
{
    KNOW(GOMP_single_start);
    bool mine = next();
    struct thread *t = gomp_here();
    if (t && mine)
        single_begins(t);
    else
        single_ends();
    return mine;
}

/* copyprivate: the others wait here for what the one hands to them. */
EXPORTED void *GOMP_single_copy_start(void)
{
    KNOW(GOMP_single_copy_start);
    single_ends();
    gomp_enter(IMPLICIT_BARRIER);
    void *handed = next();
    gomp_leave(IMPLICIT_BARRIER);
    struct thread *t = handed ? NULL : gomp_here();
    if (t)
        single_begins(t);
    return handed;
}

EXPORTED void GOMP_single_copy_end(void *handed)
{
    KNOW(GOMP_single_copy_end);
    single_ends();
    gomp_enter(IMPLICIT_BARRIER);
    next(handed);
    gomp_leave(IMPLICIT_BARRIER);
}

static void want(void)
{
    struct thread *t = gomp_here();
    if (t)
        lock_wanted(t);
}

static void got(enum guard which, int64_t lock)
{
    struct thread *t = gomp_here();
    if (t)
        guard_got(t, which, lock);
}

static void giving(enum guard which, int64_t lock)
{
    struct thread *t = gomp_here();
    if (t)
        guard_ends(t, which, lock);
}

static void gave(enum guard which, int64_t lock)
{
    struct thread *t = gomp_here();
    if (t)
        guard_ended(t, which, lock);
}

/* The lock of the critical section without a name is 0. */
EXPORTED void GOMP_critical_start(void)
{
    KNOW(GOMP_critical_start);
    want();
    next();
    got(CRITICALS, 0);
}

EXPORTED void GOMP_critical_end(void)
{
    KNOW(GOMP_critical_end);
    giving(CRITICALS, 0);
    next();
    gave(CRITICALS, 0);
}

EXPORTED void GOMP_critical_name_start(void **name)
{
    KNOW(GOMP_critical_name_start);
    want();
    next(name);
    got(CRITICALS, (int64_t)(intptr_t)name);
}

EXPORTED void GOMP_critical_name_end(void **name)
{
    KNOW(GOMP_critical_name_end);
    giving(CRITICALS, (int64_t)(intptr_t)name);
    next(name);
    gave(CRITICALS, (int64_t)(intptr_t)name);
}

/* Atomic operations that the machine does not have are critical sections with a lock of the
 * runtime's, meant by the address of this function. */
EXPORTED void GOMP_atomic_start(void)
{
    KNOW(GOMP_atomic_start);
    want();
    next();
    got(ATOMICS, (int64_t)(intptr_t)GOMP_atomic_start);
}

EXPORTED void GOMP_atomic_end(void)
{
    KNOW(GOMP_atomic_end);
    giving(ATOMICS, (int64_t)(intptr_t)GOMP_atomic_start);
    next();
    gave(ATOMICS, (int64_t)(intptr_t)GOMP_atomic_start);
}
