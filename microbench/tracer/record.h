/* What a thread's file holds: a header of 64 bytes, then records of 32 bytes in order of time.
 *
 * This file is the one place that says so; popmodel/tracer/records.py has the same numbers.
 * Integers are as the machine writes them; the header's mark tells their byte order. A record whose
 * kind is 0 ends the file: the rest of a window that was never filled, because the process was
 * killed.
 */
#ifndef POPMODEL_RECORD_H
#define POPMODEL_RECORD_H

#include <stdint.h>

#define RAW_MAGIC "popmodel" /* eight bytes, no zero at the end */
#define RAW_MARK 0x01020304u
#define RAW_VERSION 2

struct header {
    char magic[8];
    uint32_t mark;        /* RAW_MARK */
    uint32_t version;     /* RAW_VERSION */
    uint32_t header_size; /* 64 */
    uint32_t record_size; /* 32 */
    uint32_t process;     /* process id */
    uint32_t thread;      /* number of the thread in its process, 0 is the first that recorded */
    uint64_t thread_id;   /* of the kernel */
    uint64_t begin;       /* when the thread began to record */
    uint64_t reserved[2];
};

struct record {
    uint64_t time; /* ns, CLOCK_MONOTONIC */
    uint16_t kind;
    uint16_t call;
    uint32_t a;
    int64_t b;
    int64_t c;
};

#define SITE_SHIFT 48 /* in c of ENTER */

_Static_assert(sizeof(struct header) == 64, "the header is 64 bytes");
_Static_assert(sizeof(struct record) == 32, "a record is 32 bytes");

/* A communicator (`communicator` below) is meant by its local id: 0 none, 1 MPI_COMM_WORLD, 2
 * MPI_COMM_SELF, others as the meta file lists them.
 *
 * An end of a message is (world rank of the partner) << 32 | (uint32_t)tag. A partner that is in no
 * group of this process's world (spawned, connected) has rank -1. Messages to and from
 * MPI_PROC_NULL are none.
 */
enum kind {
    /* A call of MPI. call: number of calls.h; a: communicator; b, c: bytes that a collective
     * operation sends and receives, counted as Extrae does (collectives.c says how); the highest 16
     * bits of c: number of the call site, which the meta file lists, 0 unknown. */
    ENTER = 1,
    /* call: the same. a: 1 if a call of MPI_Test* or of a nonblocking probe found something. Such
     * calls that found nothing, called again and again, are one ENTER and one LEAVE: b is how many
     * calls they stand for (0 for one), c how many ns lay between these calls. */
    LEAVE = 2,

    /* Messages: between the ENTER and the LEAVE of the call that does it. a: communicator. */
    SEND = 3,     /* b: end of the message, c: bytes */
    POST = 4,     /* a receive is posted. b: its number in this process, from 1; c: 1 if blocking.
                   * MPI_Imrecv posts once more what a matched probe has posted */
    RECEIVE = 5,  /* a receive has completed. b: end of the message, c: bytes; RECEIVED follows */
    RECEIVED = 6, /* b: number of its POST. A matched probe has taken it for the MPI_Mrecv */

    /* Collective operations. */
    ROOT = 7,      /* this process is the root of the one it is in. a: communicator */
    COLLECT = 8,   /* in the call that starts a nonblocking one. a: communicator, b: its number */
    COLLECTED = 9, /* in the call that has completed it. b: the number */

    /* OpenMP. On the thread that comes across the region: */
    PARALLEL_BEGIN = 16, /* a: threads asked for, 0 unknown; b: function; c: region, unique here */
    PARALLEL_END = 17,   /* b, c: the same */
    /* On each thread of the team, its master included: */
    TASK_BEGIN = 18, /* call: nesting level; a: number in the team; b: function; c: region */
    TASK_END = 19,   /* the same */
    OMP_ENTER = 20,  /* call: enum construct; a: number in the team; b: the lock, or 0 */
    OMP_LEAVE = 21,
    TASK_CREATE = 22, /* an explicit task. b: function, c: task */
    TASK_RUN = 23,    /* b, c: the same */
    TASK_STOP = 24,   /* it is done, or another goes on */
    /* Locks that are not recorded one by one, since the record before it of the same kind and
     * call. call: enum guard. A wait of LONG_WAIT or more is an OMP_ENTER and an OMP_LEAVE, and in
     * the counts of GUARDED, but not in its time. */
    GUARDED = 25, /* a: how many of them had to wait; b: how often one was taken; c: ns waited */
    HELD = 26,    /* b: ns that they were held, from samples */

    /* What the user says. a: id of the name in the meta file */
    USER_BEGIN = 32,
    USER_END = 33,
    /* a: 1 on, 0 off. While off, messages and receives (3 to 6) are recorded all the same, without
     * the calls around them: the k-th receive belongs to the k-th send. */
    TRACING = 34,

    /* Calls of a kind are not recorded from here on (filter.c). call: enum left; a: 1 if because there
     * were too many of them per second. */
    LEFT_OUT = 35,

    /* A call for files (files.c). call: enum file_call_kind; a: descriptor, 2^32 - 1 unknown. */
    FILE_ENTER = 36,
    /* call: the same. b: bytes that it moved. Calls that follow each other at once are one: a is how
     * many it stands for, c how many ns lay between these. */
    FILE_LEAVE = 37,

    /* b: instructions, c: cycles of this thread so far; at the time of the record before it. */
    COUNTERS = 40,
    /* b: ns that this thread waited for a processor, only where that is much (cpus.h). a: 0 in the
     * computing that ends at the record behind this one, 1 in the waiting for other threads of its
     * team that has ended at the record before it. */
    DELAYED = 41,

    /* The thread was held up by taking more room in its file. */
    FLUSH_BEGIN = 48,
    FLUSH_END = 49,

    END = 63 /* the thread has ended */
};

enum construct {
    BARRIER = 1, /* explicit */
    IMPLICIT_BARRIER = 2,
    CRITICAL_WAIT = 3,
    CRITICAL_HOLD = 4,
    LOCK_WAIT = 5,
    LOCK_HOLD = 6,
    SINGLE = 7,
    SCHEDULING = 8, /* a loop hands out its iterations */
    SECTIONS = 9,
    ORDERED = 10,
    TASKWAIT = 11,
    TASKGROUP = 12,
    JOIN = 13
};

enum left { LEFT_TESTS = 1, LEFT_CHUNKS = 2, LEFT_SINGLES = 3, LEFT_RMA = 4, LEFT_IO = 5 };

/* As Extrae numbers them; those above 100 it does not have. */
enum file_call_kind {
    FILE_READ = 1,
    FILE_WRITE = 2,
    FILE_FREAD = 3,
    FILE_FWRITE = 4,
    FILE_PREAD = 5,
    FILE_PWRITE = 6,
    FILE_READV = 7,
    FILE_WRITEV = 8,
    FILE_PREADV = 9,
    FILE_PWRITEV = 10,
    FILE_OPEN = 11,
    FILE_FOPEN = 12,
    FILE_CLOSE = 101,
    FILE_FCLOSE = 102,
    FILE_SYNC = 103,
    FILE_DATA_SYNC = 104,
    FILE_FLUSH = 105
};

enum guard { LOCKS = 1, CRITICALS = 2, ATOMICS = 3 };

#define LONG_WAIT 20000 /* ns */

#endif
