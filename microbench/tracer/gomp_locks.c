/* Locks of OpenMP programs, where the runtime does not tell its tool of them. The names with an
 * underscore are those of Fortran. A lock that can be set again by its owner is held as often as it
 * is set.
 */
#define _GNU_SOURCE
#include "gomp.h"

static void want(void)
{
    struct thread *t = gomp_here();
    if (t)
        lock_wanted(t);
}

static void got(const void *lock)
{
    struct thread *t = gomp_here();
    if (t)
        lock_got(t, LOCK_WAIT, LOCK_HOLD, (int64_t)(intptr_t)lock);
}

static void giving(void)
{
    struct thread *t = gomp_here();
    if (t)
        lock_ends(t);
}

static void gave(const void *lock)
{
    struct thread *t = gomp_here();
    if (t)
        lock_ended(t, LOCK_HOLD, (int64_t)(intptr_t)lock);
}

#define SET(name)                  \
    EXPORTED void name(void *lock) \
    {                              \
        KNOW(name);                \
        want();                    \
        next(lock);                \
        got(lock);                 \
    }

#define UNSET(name)                \
    EXPORTED void name(void *lock) \
    {                              \
        KNOW(name);                \
        giving();                  \
        next(lock);                \
        gave(lock);                \
    }

#define TEST(name)                \
    EXPORTED int name(void *lock) \
    {                             \
        KNOW(name);               \
        want();                   \
        int result = next(lock);  \
        if (result)               \
            got(lock);            \
        return result;            \
    }

SET(omp_set_lock)
SET(omp_set_lock_)
SET(omp_set_nest_lock)
SET(omp_set_nest_lock_)
UNSET(omp_unset_lock)
UNSET(omp_unset_lock_)
UNSET(omp_unset_nest_lock)
UNSET(omp_unset_nest_lock_)
TEST(omp_test_lock)
TEST(omp_test_lock_)
TEST(omp_test_nest_lock)
TEST(omp_test_nest_lock_)
