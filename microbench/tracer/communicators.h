/* Communicators: local ids, and ranks in MPI_COMM_WORLD.
 *
 * Each process numbers its communicators as it meets them. Which of them are one and the same is
 * found when the trace is merged, without any communication here: by the members, and by the order
 * in which communicators of the same members were made from the same parent, which is the same in
 * all members because making one is collective over the parent.
 */
#ifndef POPMODEL_COMMUNICATORS_H
#define POPMODEL_COMMUNICATORS_H

#include <mpi.h>

#include "next.h"
#include "state.h"

/* With whom a collective operation between neighbours exchanges messages: ranks in the communicator,
 * in the order of its arguments, and tags that no program uses. On a grid what goes down a dimension
 * comes from above, also where both are the same process. */
struct neighbours {
    int out, in;
    struct neighbour {
        int rank, tag;
    } of[]; /* those to send to, then those to receive from */
};

struct communicator {
    uint32_t id; /* 0: none that is known */
    int rank, size;
    int remote; /* members of the other group of an intercommunicator, 0 for others */
    int *world; /* of the group that messages go to: ranks in MPI_COMM_WORLD; NULL if the same */
    int *local; /* of this process's group; the same memory as `world` if there is one group */
    uint64_t hash;
    uint32_t ordinal;
    struct neighbours *neighbours; /* NULL as long as nobody has asked */
    _Atomic long users; /* the handle, and pending receives */
};

extern _Atomic uint64_t communicators_freed;
extern bool many_threads; /* MPI_THREAD_MULTIPLE was provided */

/* Adds to what threads share and returns the sum. Where only one thread at a time is in MPI, a
 * locked instruction would cost for nothing. */
static inline long shared_add(_Atomic long *counter, long by)
{
    if (many_threads)
        return atomic_fetch_add(counter, by) + by;
    long sum = atomic_load_explicit(counter, memory_order_relaxed) + by;
    atomic_store_explicit(counter, sum, memory_order_relaxed);
    return sum;
}

/* At the end of MPI_Init: COMM_WORLD and COMM_SELF. */
void communicators_start(int rank, int size);

/* A new one: a line in the meta file, and an id. `parent` NULL if there is none that all members
 * share; `tag` tells apart those that several threads may make of one parent at the same time. */
void communicator_new(MPI_Comm, const struct communicator *parent, int tag);

/* In two steps, for those that are there only later (MPI_Comm_idup): what all members agree on is
 * decided when the call is made. */
struct communicator *communicator_promise(const struct communicator *parent);
void communicator_keep(MPI_Comm, struct communicator *promised);

void communicator_release(struct communicator *);

struct communicator *communicator_find(struct thread *, MPI_Comm);

/* NULL if there is no memory (noted). */
const struct neighbours *neighbours_of(struct communicator *, MPI_Comm);

static inline uintptr_t handle_number(MPI_Comm comm)
{
    return (uintptr_t)comm;
}

/* What a handle means; never NULL. */
static inline struct communicator *communicator_of(struct thread *t, MPI_Comm comm)
{
    uintptr_t handle = handle_number(comm);
    unsigned slot = (unsigned)((handle >> 9) ^ (handle >> 4) ^ handle) % KNOWN;
    if (LIKELY(t->known[slot].handle == handle && t->known[slot].communicator &&
               t->generation ==
                   atomic_load_explicit(&communicators_freed, memory_order_acquire)))
        return t->known[slot].communicator;
    return communicator_find(t, comm);
}

/* Whether a partner of that rank exists: MPI_PROC_NULL and wrong numbers are none. */
static inline bool has_partner(const struct communicator *c, int rank)
{
    return (unsigned)rank < (unsigned)(c->remote ? c->remote : c->size);
}

/* Rank in MPI_COMM_WORLD of a partner; -1 if it is not there. */
static inline int world_rank(const struct communicator *c, int rank)
{
    if (!has_partner(c, rank))
        return -1;
    return c->world ? c->world[rank] : rank;
}

static inline int64_t message_end(int partner, int tag)
{
    return (int64_t)(((uint64_t)(uint32_t)partner << 32) | (uint32_t)tag);
}

#endif
