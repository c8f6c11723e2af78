/* What is recorded of OpenMP, however it is noticed: by the tool interface of the runtime
 * (openmp_ompt.c) or by wrapping the entries of libgomp (gomp_*.c).
 *
 * Of a parallel region
 *     the thread that comes across it: PARALLEL_BEGIN ... PARALLEL_END, and from the end of its own
 *     part to there OMP_ENTER and OMP_LEAVE with JOIN, in which it waits for the others;
 *     every thread of the team, that one included: TASK_BEGIN when it begins with the body of the
 *     region, TASK_END when it is through with it, not when the region ends: what lies between is
 *     waiting. Explicit tasks that a thread carries out there follow its TASK_END.
 * Of constructs that wait (barriers, locks, taskwait, ordered, ...) the wait; of critical sections
 * and locks also how long they are held; of single and sections the body, in which work is done.
 * SCHEDULING is each request for iterations of a loop or for a section; loops with a static
 * schedule make none.
 *
 * A function is the address of what the compiler made of the region or task (libgomp), or of the
 * call that starts it (tool interface); the meta file has where to find it.
 */
#ifndef POPMODEL_OPENMP_H
#define POPMODEL_OPENMP_H

#include "cpus.h"
#include "process.h"
#include "summary.h"

#define CONSTRUCTS (JOIN + 1)

/* What a region or task carries through the runtime, in the 64 bits that the tool interface has for
 * it. 0 is none. */
struct label {
    uint64_t id;       /* below 2^40 */
    int level;         /* of a region: 1 outermost; below 2^8 */
    unsigned function; /* its number, see functions.c */
};

/* The part of a thread in a region: its implicit task. */
struct member {
    struct member *outer; /* that it is nested in */
    int64_t region;
    const void *function;
    int level;
    unsigned number; /* in the team */
    bool ended;      /* TASK_END is recorded */
    bool single;     /* in a single construct */
    bool sections;   /* in a sections construct (libgomp) */
};

/* What a thread has open. */
struct openmp {
    struct member *here;
    uint64_t since; /* when it began to wait for a lock, or gave one away; 0: neither */
    unsigned tasks; /* explicit ones under way, each inside the one before it */
    uint16_t open[CONSTRUCTS];
};
extern __thread struct openmp openmp __attribute__((tls_model("initial-exec")));

enum openmp_how { BY_CHOICE, BY_OMPT, BY_GOMP, BY_NOTHING };

/* POPMODEL_TRACE_OPENMP; BY_CHOICE is auto. */
enum openmp_how openmp_wanted(void);

/* Tells the meta file once for each way. */
void openmp_tell(enum openmp_how, const char *runtime);

/* functions.c: the number of a function, which the meta file then describes; 0 if there are too
 * many, which is noted, or if it is NULL. */
unsigned function_number(const void *address);
const void *function_address(unsigned number);

/* guards.c: puts the sums of the locks that this thread has taken. */
#define MOST_SUMS 6 /* records */
void guards_put(struct thread *, uint64_t time);

uint64_t next_region(void);
uint64_t next_task(void);

static inline unsigned team_number(void)
{
    return openmp.here ? openmp.here->number : 0;
}

static inline int team_level(void)
{
    return openmp.here ? openmp.here->level : 0;
}

static inline void counters_at(struct thread *t, uint64_t time)
{
    if (UNLIKELY(watching() & COUNTING))
        put_counters(t, time);
}

/* Whether a thread that is in it does no work: what Paraver shows as a state of its own. The
 * hardware counters are read there, so that what is counted while waiting is not taken for work. */
static inline bool waits(enum construct construct)
{
    return construct != CRITICAL_HOLD && construct != LOCK_HOLD && construct != SINGLE &&
           construct != SECTIONS;
}

static inline void construct_put(struct thread *t, uint64_t time, enum kind kind,
                                 enum construct construct, int64_t lock)
{
    put(t, time, kind, construct, team_number(), lock, 0);
    if (waits(construct))
        counters_at(t, time);
}

static inline bool unwanted(enum construct construct)
{
    return watching() & PAUSED || (construct == SCHEDULING && is_left_out(LEFT_CHUNKS)) ||
           (construct == SINGLE && is_left_out(LEFT_SINGLES));
}

/* Nothing is recorded while the user has switched tracing off, but what was entered is left. */
static inline void construct_enter(struct thread *t, enum construct construct, int64_t lock)
{
    window_check();
    if (UNLIKELY(watching() & (PAUSED | LEAVING)) && unwanted(construct))
        return;
    room(t, 5 + MOST_SUMS);
    openmp.open[construct]++;
    uint64_t time = now();
    if (waits(construct)) {
        guards_put(t, time);
        time = computing_ends(t, time);
    }
    construct_put(t, time, OMP_ENTER, construct, lock);
}

static inline void construct_leave(struct thread *t, enum construct construct, int64_t lock)
{
    if (UNLIKELY(openmp.open[construct] == 0))
        return;
    room(t, 4);
    openmp.open[construct]--;
    uint64_t time = now();
    construct_put(t, time, OMP_LEAVE, construct, lock);
    if (waits(construct))
        computing_begins(t, time, IN_TEAM);
    settle(t);
}

/* The thread carries out the body of a single construct. libgomp has an entry at its begin only, so
 * it ends no later than at the next barrier or work sharing of its thread, which cannot be inside
 * it: that is exact but where it has `nowait`. */
static inline void single_ends(void)
{
    struct member *here = openmp.here;
    if (LIKELY(!here || !here->single))
        return;
    here->single = false;
    struct thread *t = thread_here();
    if (t)
        construct_leave(t, SINGLE, 0);
}

static inline void single_begins(struct thread *t)
{
    single_ends();
    if (!openmp.here)
        return;
    openmp.here->single = true;
    construct_enter(t, SINGLE, 0);
}

/* The thread comes across a region and leaves it. */
static inline void region_begin(struct thread *t, unsigned threads, int64_t id,
                                const void *function)
{
    room(t, 5 + MOST_SUMS);
    uint64_t time = now();
    guards_put(t, time);
    time = computing_ends(t, time);
    put(t, time, PARALLEL_BEGIN, 0, threads, (int64_t)(uintptr_t)function, id);
    counters_at(t, time);
}

static inline void region_end(struct thread *t, int64_t id, const void *function)
{
    room(t, 4);
    uint64_t time = now();
    if (LIKELY(openmp.open[JOIN])) {
        openmp.open[JOIN]--;
        put(t, time, OMP_LEAVE, JOIN, 0, 0, 0);
    }
    put(t, time, PARALLEL_END, 0, 0, (int64_t)(uintptr_t)function, id);
    counters_at(t, time);
    computing_begins(t, time, IN_TEAM);
    settle(t);
}

/* The thread begins and ends its part. The member is not `here` any more when its region has ended,
 * which may be later. */
static inline void member_begin(struct thread *t, struct member *member)
{
    room(t, 5 + MOST_SUMS);
    member->outer = openmp.here;
    openmp.here = member;
    uint64_t time = now();
    guards_put(t, time);
    put(t, time, TASK_BEGIN, member->level, member->number, (int64_t)(uintptr_t)member->function,
        member->region);
    counters_at(t, time);
    computing_begins(t, time, IN_TEAM);
}

static inline void member_end(struct thread *t, struct member *member)
{
    single_ends();
    room(t, 5 + MOST_SUMS);
    uint64_t time = now();
    guards_put(t, time);
    time = computing_ends(t, time);
    member->ended = true;
    put(t, time, TASK_END, member->level, member->number, (int64_t)(uintptr_t)member->function,
        member->region);
    counters_at(t, time);
    if (member->number == 0) {
        openmp.open[JOIN]++;
        put(t, time, OMP_ENTER, JOIN, 0, 0, 0);
    }
    settle(t);
}

/* Explicit tasks. */
static inline void task_create(struct thread *t, int64_t id, const void *function)
{
    if (UNLIKELY(watching() & PAUSED))
        return;
    room(t, 1);
    put(t, now(), TASK_CREATE, 0, 0, (int64_t)(uintptr_t)function, id);
}

static inline void task_run(struct thread *t, int64_t id, const void *function)
{
    if (UNLIKELY(watching() & PAUSED))
        return;
    openmp.tasks++;
    room(t, 3);
    uint64_t time = now();
    put(t, time, TASK_RUN, 0, 0, (int64_t)(uintptr_t)function, id);
    counters_at(t, time);
    computing_begins(t, time, IN_TEAM);
}

static inline void task_stop(struct thread *t, int64_t id, const void *function)
{
    if (UNLIKELY(openmp.tasks == 0))
        return;
    openmp.tasks--;
    room(t, 3 + MOST_SUMS);
    uint64_t time = now();
    /* Of tasks that are carried out while the thread waits for its team nothing else follows. */
    if (!openmp.here || openmp.here->ended)
        guards_put(t, time);
    time = computing_ends(t, time);
    put(t, time, TASK_STOP, 0, 0, (int64_t)(uintptr_t)function, id);
    counters_at(t, time);
}

#endif
