/* Which processors a thread may use, and how long it used them or waited for one. */
#ifndef POPMODEL_CPUS_H
#define POPMODEL_CPUS_H

#include "meta.h"
#include "state.h"

/* Adds the processors that the calling thread may use to a line. */
void line_cpus(struct line *);

/* Tells the processors that a thread may use where they are others than when it was told last. */
void cpus_tell(struct thread *);

/* Takes what a thread has used so far as its begin: of one that starts MPI, its end of that. */
void usage_begin(struct thread *);

/* Tells what a thread has used up to here, and nothing at its end: what MPI takes to stop. */
void usage_end(struct thread *);

/* Tells the meta file what the thread has used since then; of one that is there still. */
void usage_tell(const struct thread *);

/* What a thread waited for a processor while it computed, or when it was woken up by its team. Its
 * CPU time is read where computing begins and ends, which takes some 250 ns, but not again within
 * LOOK_EVERY: short bursts share a reading with what is between them. Where it is less than the time
 * that passed by NOTEWORTHY or more, the kernel is asked what the thread waited, and a record says
 * it. So a thread that has its processor to itself records nothing. In calls of MPI nobody asks. */
#define LOOK_EVERY 50000u /* ns */
#define NOTEWORTHY 20000u /* ns */

enum look { IN_COMPUTING, IN_TEAM, IN_CALL };
uint64_t delay_look(struct thread *, uint64_t time, enum look);

/* Where computing ends, and when that is then: a kernel that is asked takes the processor away, if
 * it would soon, and that is no time of what follows. There is room for a record, which stands
 * before what ends it. */
static inline uint64_t computing_ends(struct thread *t, uint64_t time)
{
    return UNLIKELY(time >= t->look_at) ? delay_look(t, time, IN_COMPUTING) : time;
}

/* Where it begins behind a call, or behind waiting for the team: then with room for a record. */
static inline void computing_begins(struct thread *t, uint64_t time, enum look behind)
{
    if (UNLIKELY(time >= t->look_at))
        delay_look(t, time, behind);
}

#endif
