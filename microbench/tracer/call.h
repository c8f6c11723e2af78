/* What every wrapper of an MPI call does before and after it.
 *
 *     struct thread *t = call_begin();
 *     if (!t)
 *         return NEXT(Send)(...);              // MPI calls itself, or nothing is recorded
 *     struct communicator *c = communicator_of(t, comm);
 *     call_enter(t, CALL_Send, c->id);
 *     ...                                      // up to 12 records at t->time
 *     int result = NEXT(Send)(...);
 *     call_return(t);
 *     ...                                      // up to 6 records at t->time, more after room_at()
 *     call_leave(t, CALL_Send, 0);
 *     return result;
 *
 * Calls with counts are compiled twice, the second time with LARGE defined, for MPI_Count.
 */
#ifndef POPMODEL_CALL_H
#define POPMODEL_CALL_H

#include <mpi.h>

#include "cpus.h"
#include "next.h"
#include "sites.h"
#include "state.h"
#include "summary.h"

#ifdef LARGE
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define MPI(name) MPI_##name##_c
#define NEXT(name) NEXT_LARGE(name)
#else
#define COUNT int
#define DISPLACEMENT int
#define MPI(name) MPI_##name
#define NEXT(name) NEXT_PLAIN(name)
#endif

/* A wrapper has both names of its function, MPI_Send and PMPI_Send, for the sake of Fortran: what
 * a program calls there (mpi_send_, mpi_send_f08_, ...) ends in one of them. Open MPI calls the
 * second; MPICH calls the first, and from the module mpi_f08 now the one, now the other. So calls
 * of all languages are seen here, with C's handles, statuses and constants; and what MPI calls
 * within a call is told apart by the depth.
 */
#define WRAPPER(name) WRAPPER_OF(name)
#define WRAPPER_OF(name)                                                                          \
    EXPORTED __typeof__(name) P##name __attribute__((alias(#name)));                              \
    EXPORTED int name

/* The same for one that the library may not declare. */
#define NEWER_WRAPPER(name, ...)                                                                  \
    EXPORTED int name(__VA_ARGS__);                                                               \
    WRAPPER(name)(__VA_ARGS__)

extern bool mpi_ready; /* between the end of MPI_Init and that of MPI_Finalize (init.c) */

/* Before and after that: makes sure that the call can be passed on. NULL. */
struct thread *call_unready(void);

static inline struct thread *call_begin(void)
{
    if (UNLIKELY(!mpi_ready))
        return call_unready();
    struct thread *t = thread_here();
    return LIKELY(t && t->depth == 0) ? t : NULL;
}

/* What stands in the wrapper itself, so that it knows who has called that. */
#define IN_WRAPPER static inline __attribute__((always_inline))

IN_WRAPPER void enter_at(struct thread *t, uint64_t time, int call, uint32_t communicator,
                         int64_t sent, int64_t received, unsigned site)
{
    int watched = watching();
    t->time = time;
    t->entered = !(watched & PAUSED || (UNLIKELY(watched & LEAVING) && call_left_out(call)));
    if (UNLIKELY(!t->entered))
        return;
    t->time = time = computing_ends(t, time);
    put(t, time, ENTER, call, communicator, sent, received | (int64_t)site << SITE_SHIFT);
    if (UNLIKELY(watched & COUNTING))
        put_counters(t, time);
}

/* When a call begins: what has to be found out for its ENTER is then a part of it. */
static inline uint64_t call_open(struct thread *t)
{
    window_check();
    t->depth = 1;
    room(t, 16);
    return now();
}

IN_WRAPPER void call_enter(struct thread *t, int call, uint32_t communicator)
{
    enter_at(t, call_open(t), call, communicator, 0, 0, SITE_HERE());
}

static inline void call_return(struct thread *t)
{
    room(t, 8);
    t->time = now();
}

static inline struct record *leave_at(struct thread *t, int call, uint32_t state, int64_t calls,
                                      int64_t gaps)
{
    struct record *leave = NULL;
    if (LIKELY(t->entered)) {
        leave = t->next;
        put(t, t->time, LEAVE, call, state, calls, gaps);
        if (UNLIKELY(watching() & COUNTING))
            put_counters(t, t->time);
        computing_begins(t, t->time, IN_CALL);
        settle(t);
    }
    t->depth = 0;
    return leave;
}

static inline void call_leave(struct thread *t, int call, uint32_t state)
{
    leave_at(t, call, state, 0, 0);
}

/* A program that waits by testing tests a million times a second. As long as there is less than
 * this between two tests, it does nothing else: they become one call. */
#define POLL_GAP 1000u /* ns */

IN_WRAPPER void poll_enter(struct thread *t, int call, uint32_t communicator)
{
    uint64_t time = call_open(t);
    unsigned site = SITE_HERE();
    struct record *missed = t->missed;
    int length = watching() & COUNTING ? 2 : 1;
    t->misses = t->gaps = 0;
    if (missed && t->next - missed == length && missed->call == call &&
        t->missed_on == communicator && t->missed_at == site && time - missed->time < POLL_GAP) {
        t->misses = missed->b ? missed->b : 1;
        t->gaps = missed->c + (int64_t)(time - missed->time);
        t->entered = true;
        for (int i = length - 1; i >= 0; i--)
            missed[i].kind = 0; /* should the process end here, the file ends here */
        t->next = missed;
    } else {
        t->tried = is_left_out(LEFT_TESTS) ? t->next : NULL;
        enter_at(t, time, call, communicator, 0, 0, site);
    }
    t->missed = NULL;
    t->missed_on = communicator;
    t->missed_at = site;
}

static inline void poll_leave(struct thread *t, int call, bool found)
{
    if (UNLIKELY(t->tried != NULL)) {
        /* It is as if the test had not been, unless it found something. */
        for (struct record *record = t->next; !found && record > t->tried;)
            (--record)->kind = 0;
        if (!found) {
            t->next = t->tried;
            t->entered = false;
        }
        t->tried = NULL;
    }
    struct record *leave =
        leave_at(t, call, found, t->misses ? t->misses + 1 : 0, t->misses ? t->gaps : 0);
    t->missed = found ? NULL : leave;
}

/* Bytes of so many elements. The type of none may be anything. */
static inline int64_t bytes_of(int64_t count, MPI_Datatype type)
{
    if (count <= 0)
        return 0;
    int size;
    if (LIKELY(pmpi.Type_size(type, &size) == MPI_SUCCESS && size != MPI_UNDEFINED))
        return count * size;
    MPI_Count large;
    return pmpi.Type_size_x(type, &large) == MPI_SUCCESS && large > 0 ? count * (int64_t)large : 0;
}

#endif
