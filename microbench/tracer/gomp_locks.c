/* Locks of OpenMP programs, where the runtime does not tell its tool of them. The names with an
 * underscore are those of Fortran. A lock that can be set again by its owner is held as often as it
 * is set.
 *
 * A lock that nobody has is taken by testing it: then its thread has not waited, and needs no clock
 * to know that.
 */
#define _GNU_SOURCE
#include "gomp.h"
#include "guards.h"

static void got(struct thread *t, const void *lock)
{
    t = t ? gomp_here() : NULL;
    if (t)
        guard_got(t, LOCKS, (int64_t)(intptr_t)lock);
}

/* Takes it, if nobody else has it, and counts it. */
static bool got_at_once(struct thread *t, int (*test)(void *), void *lock)
{
    if (!test || !test(lock))
        return false;
    guard_taken(t, LOCKS, (int64_t)(intptr_t)lock);
    return true;
}

static void waited(struct thread *t, const void *lock, uint64_t since)
{
    guard_waited(t, LOCKS, (int64_t)(intptr_t)lock, since, 0);
}

#define SET(name, tested)                                            \
    EXPORTED void name(void *lock)                                   \
    {                                                                \
        KNOW(name);                                                  \
        struct thread *t = gomp_here();                              \
        if (LIKELY(t && guards_summed())) {                          \
            static _Atomic(int (*)(void *)) test;                    \
            if (UNLIKELY(!test))                                     \
                test = (int (*)(void *))entry_if_any(#tested);       \
            if (LIKELY(got_at_once(t, test, lock)))                  \
                return;                                              \
            uint64_t since = now();                                  \
            next(lock);                                              \
            waited(t, lock, since);                                  \
        } else {                                                     \
            if (t)                                                   \
                lock_wanted(t);                                      \
            next(lock);                                              \
            got(t, lock);                                            \
        }                                                            \
    }

#define UNSET(name)                                                  \
    EXPORTED void name(void *lock)                                   \
    {                                                                \
        KNOW(name);                                                  \
        struct thread *t = gomp_here();                              \
        if (t)                                                       \
            guard_ends(t, LOCKS, (int64_t)(intptr_t)lock);           \
        next(lock);                                                  \
        if (t)                                                       \
            guard_ended(t, LOCKS, (int64_t)(intptr_t)lock);          \
    }

#define TEST(name)                                                   \
    EXPORTED int name(void *lock)                                    \
    {                                                                \
        KNOW(name);                                                  \
        struct thread *t = gomp_here();                              \
        if (LIKELY(t && guards_summed())) {                          \
            int result = next(lock);                                 \
            if (result)                                              \
                guard_taken(t, LOCKS, (int64_t)(intptr_t)lock);      \
            return result;                                           \
        }                                                            \
        if (t)                                                       \
            lock_wanted(t);                                          \
        int result = next(lock);                                     \
        if (result)                                                  \
            got(t, lock);                                            \
        return result;                                               \
    }

SET(omp_set_lock, omp_test_lock)
SET(omp_set_lock_, omp_test_lock_)
SET(omp_set_nest_lock, omp_test_nest_lock)
SET(omp_set_nest_lock_, omp_test_nest_lock_)
UNSET(omp_unset_lock)
UNSET(omp_unset_lock_)
UNSET(omp_unset_nest_lock)
UNSET(omp_unset_nest_lock_)
TEST(omp_test_lock)
TEST(omp_test_lock_)
TEST(omp_test_nest_lock)
TEST(omp_test_nest_lock_)
