/* Locks, critical sections and atomic operations: what they cost, without a record of each.
 *
 * Programs take millions of locks a second, mostly without waiting. A thread counts them and adds
 * up how long it waited, and puts the sums (GUARDED, HELD) where it comes to something that is
 * recorded anyway: the end of its part in a region, a barrier. Only a long wait has records of its
 * own. With POPMODEL_TRACE_LOCKS=each every lock has.
 *
 * How long they are held is measured of one in 16, and of all as long as they are few.
 */
#ifndef POPMODEL_GUARDS_H
#define POPMODEL_GUARDS_H

#include "openmp.h"

/* Entering a critical section takes a time that says whether another thread was in it. */
#define WAITED 500 /* ns */

/* Whether locks are summed up now; else they are recorded one by one, or tracing is off. */
static inline bool guards_summed(void)
{
    return LIKELY(!(watching() & (EACH_GUARD | PAUSED)));
}

/* A lock is taken that is the one to be sampled. */
void guard_sample(struct thread *, enum guard, int64_t lock);
void guard_released(struct sums *);

/* Waited since then; the lock is taken. */
void guard_waited(struct thread *, enum guard, int64_t lock, uint64_t since, uint64_t long_enough);

static inline void guard_taken(struct thread *t, enum guard which, int64_t lock)
{
    struct sums *sums = &t->guards.of[which];
    sums->taken++;
    if (UNLIKELY(sums->left-- == 0))
        guard_sample(t, which, lock);
}

/* Before it is given away. */
static inline void guard_leaves(struct thread *t, enum guard which, int64_t lock)
{
    struct sums *sums = &t->guards.of[which];
    if (UNLIKELY(sums->since && sums->lock == lock))
        guard_released(sums);
}

/* A wait is recorded when it is over: a test of a lock that fails leaves nothing. Meanwhile the
 * thread records nothing else. */
static inline void lock_wanted(struct thread *t)
{
    room(t, 8);
    openmp.since = now();
}

/* `hold` is 0 for constructs of which only the wait is recorded. */
static inline void lock_got(struct thread *t, enum construct wait, enum construct hold,
                            int64_t lock)
{
    uint64_t since = openmp.since;
    openmp.since = 0;
    /* Recording began in between: it is not known since when the thread has waited. */
    if (UNLIKELY(watching() & PAUSED || since == 0))
        return;
    since = room_at(t, 8, since);
    construct_put(t, since, OMP_ENTER, wait, lock);
    uint64_t time = now();
    construct_put(t, time, OMP_LEAVE, wait, lock);
    if (hold) {
        openmp.open[hold]++;
        construct_put(t, time, OMP_ENTER, hold, lock);
    }
}

/* Around giving it away, so that no two threads are seen to hold it at the same time. */
static inline void lock_ends(struct thread *t)
{
    room(t, 4);
    openmp.since = now();
}

static inline void lock_ended(struct thread *t, enum construct hold, int64_t lock)
{
    if (UNLIKELY(openmp.open[hold] == 0))
        return;
    openmp.open[hold]--;
    construct_put(t, room_at(t, 4, openmp.since), OMP_LEAVE, hold, lock);
}

/* A lock, by those who know when a thread begins to want it (lock_wanted) and has it, ... */
static inline void guard_got(struct thread *t, enum guard which, int64_t lock)
{
    if (LIKELY(guards_summed())) {
        if (LIKELY(openmp.since)) /* else recording began in between */
            guard_waited(t, which, lock, openmp.since, WAITED);
        openmp.since = 0;
    } else if (which == LOCKS) {
        lock_got(t, LOCK_WAIT, LOCK_HOLD, lock);
    } else {
        lock_got(t, CRITICAL_WAIT, CRITICAL_HOLD, lock);
    }
}

/* ... and before and after it gives it away. */
static inline void guard_ends(struct thread *t, enum guard which, int64_t lock)
{
    guard_leaves(t, which, lock);
    if (UNLIKELY(watching() & EACH_GUARD))
        lock_ends(t);
}

static inline void guard_ended(struct thread *t, enum guard which, int64_t lock)
{
    if (UNLIKELY(watching() & EACH_GUARD))
        lock_ended(t, which == LOCKS ? LOCK_HOLD : CRITICAL_HOLD, lock);
}

#endif
