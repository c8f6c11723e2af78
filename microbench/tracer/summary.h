/* Summaries (POPMODEL_TRACE_SUMMARY=1): sums of each thread, and no records.
 *
 * Every group of records is added up as soon as it is put, and forgotten: the fast path (state.h) is
 * the same, with a buffer that is always full. The sums lie in a page of a file that is mapped, one
 * for each thread (HOST.PID.tN.sums), so that they are there whatever becomes of the process. They
 * begin at the end of MPI_Init and end where MPI_Finalize begins; without MPI they begin with the
 * first parallel region and end with the process. What the kernel knows of a thread is asked for
 * once a second, and at the end.
 */
#ifndef POPMODEL_SUMMARY_H
#define POPMODEL_SUMMARY_H

#include "calls.h"
#include "record.h"
#include "state.h"

#define SUMMARY_CONSTRUCTS (JOIN + 1)
#define SUMMARY_PLACES 8

enum call_family {
    FAMILY_message,
    FAMILY_probe,
    FAMILY_completion,
    FAMILY_collective,
    FAMILY_icollective,
    FAMILY_neighbour,
    FAMILY_process,
    FAMILY_communicator,
    FAMILY_buffer,
    FAMILY_persistent,
    FAMILY_rma,
    FAMILY_io,
    CALL_FAMILIES
};

/* What a file of sums holds behind its header; popmodel/tracer/summaries.py has the same order.
 * Times in ns. [0] outside of parallel regions, [1] inside. */
struct sums_of_thread {
    uint64_t begin, end; /* what lies between is added up */
    uint64_t is_worker;  /* began with its part in a region: idle outside of regions */
    uint64_t has_ended;
    uint64_t useful[2], mpi[2];
    uint64_t fork, idle;
    uint64_t waits[SUMMARY_CONSTRUCTS]; /* by enum construct */
    uint64_t in_regions;                /* from begin to end of regions that it came across */
    uint64_t regions, parts, asked;     /* regions it came across, its parts; threads asked for, most */
    /* Of the kernel, since the begin. */
    uint64_t used, waited;
    uint64_t voluntary, involuntary, migrations, minor, major;
    uint64_t knows_migrations;
    struct {
        uint64_t calls, time, sent, received;
    } families[CALL_FAMILIES];
    /* Where it was seen, at most once a millisecond: a processor + 1, and how often. */
    struct {
        uint64_t cpu, times;
    } places[SUMMARY_PLACES];
};

bool summary_wanted(void); /* of this process */

/* The file of a thread; false if there is none (told). */
bool summary_open(struct thread *);

/* Adds up what was put. */
void summary_fold(struct thread *);

/* Asks the kernel, of any thread; at its end. */
void summary_look(struct thread *);

/* The variables that place threads, and the processors of this node. */
void tell_surroundings(void);

/* The window begins and ends here, for all threads. */
void summary_begin(void);
void summary_end(void);

static inline void settle(struct thread *t)
{
    if (UNLIKELY(t->summary != NULL))
        summary_fold(t);
}

#endif
