/* A thread that records, and how it puts records: the fast path.
 *
 * A record is 32 bytes written into a window of the thread's file that is mapped into memory; there
 * is no lock and no system call. Whoever puts a group of records asks for room first and takes the
 * time afterwards: taking room may need a new window and takes time itself.
 *
 *     struct thread *t = thread_here();
 *     if (!t)
 *         return;              // dormant, in a forked child, after the end
 *     room(t, 2);
 *     uint64_t time = now();
 *     put(t, time, OMP_ENTER, BARRIER, number, 0, 0);
 *     ...
 */
#ifndef POPMODEL_STATE_H
#define POPMODEL_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "calls.h"
#include "record.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Visible to the program: all else is hidden (-fvisibility=hidden). */
#define EXPORTED __attribute__((visibility("default")))

enum phase {
    DORMANT,   /* nothing is created yet */
    RECORDING, /* there are files */
    OVER       /* for ever: the process ends, is a forked child, or has no directory */
};

/* Most records that one call of room() may ask for. */
#define MOST_ROOM 64

#define KNOWN 16 /* communicators that a thread remembers */

struct communicator;
struct summary;

/* What a thread has summed up of its locks (guards.h). */
#define GUARDS (ATOMICS + 1)

struct sums {
    uint64_t taken, waits, waited, held;
    uint64_t told; /* of those taken */
    uint32_t left; /* to be taken before the next one is sampled */
    int64_t lock;  /* the one sampled */
    uint64_t since; /* when it was taken; 0 if it is not held any more */
    uint64_t sampled; /* how many were taken up to it */
    uint64_t stands_for;
};

struct guards {
    struct sums of[GUARDS];
    uint32_t random;
    uint64_t put; /* when sums were put last */
};

struct thread {
    struct record *next; /* goes here */
    struct record *end;  /* of the window, but for one that is kept for END */
    int depth;           /* above 0 in a call of MPI: what MPI calls itself is not recorded */
    bool entered;        /* the call has an ENTER, so it gets a LEAVE */
    uint64_t time;       /* of that ENTER */

    /* Tests that find nothing, one after the other, are one call (call.h). */
    struct record *missed; /* the LEAVE of such a test */
    uint32_t missed_on;    /* communicator */
    unsigned missed_at;    /* call site */
    struct record *tried;  /* the ENTER of the test under way, where tests are left out */
    int64_t misses, gaps;  /* calls before the one under way, and ns between them */

    /* Communicators by handle, forgotten when any was freed (communicators.h). */
    uint64_t generation;
    struct {
        uintptr_t handle;
        struct communicator *communicator;
    } known[KNOWN];

    /* What calls on many requests work with (completion.c), grown as needed. */
    void *scratch[2];
    size_t scratch_size[2];

    struct guards guards;

    /* The file (buffer.c). */
    char *window;
    size_t window_size;
    uint64_t offset; /* of the window in the file */
    uint64_t since;  /* when it was made */
    struct record *begun; /* the first that was put into it */
    uint64_t records;
    bool stopped; /* no more room: records go into `nowhere` and are lost */
    unsigned number;
    pid_t id;          /* of the kernel */
    bool has_usage;    /* `usage` is known */
    uint64_t usage[2]; /* at its begin (cpus.c) */
    uint64_t look_at;  /* when its CPU time is read next (cpus.h) */
    uint64_t looked;   /* when it was read last, */
    uint64_t used;     /* what it was then, */
    uint64_t waited;   /* and what the thread had waited for a processor when that was read last */
    uint64_t cpus;     /* a hash of those that it may use, as told last, */
    int cpus_told;     /* and how often */
    char *path;
    struct thread *following; /* all threads, newest first (process.c) */
    struct summary *summary;  /* records are added up in it and go nowhere (summary.h); else NULL */
    struct record nowhere[MOST_ROOM + 1];
};

extern _Atomic int phase;
extern __thread struct thread *this_thread __attribute__((tls_model("initial-exec")));

/* What an ENTER or a LEAVE has to look at, in one word. */
enum watch {
    PAUSED = 1,     /* the user has switched tracing off */
    COUNTING = 2,   /* counters are read at every ENTER and LEAVE */
    EACH_GUARD = 4, /* locks are recorded one by one (guards.h) */
    LEAVING = 16,   /* calls of some kinds are left out (filter.c) */
    CLOSED = 8      /* outside of the window of time (window.c) */
};
extern _Atomic int watch;

/* Reads the counters of this thread and puts COUNTERS at this time; counters.c sets it together
 * with COUNTING. There is room for the record. */
extern void (*put_counters)(struct thread *, uint64_t time);

/* Puts what a thread has summed up and not put yet, before it ends; guards.c sets it. */
#define REST 8 /* records, at most */
extern void (*put_rest)(struct thread *, uint64_t time);

/* Switches the recording of this process on and off, with a TRACING record. */
void tracing(bool on);

/* window.c: when the recording is switched on or off next. */
#define NEVER UINT64_MAX
extern _Atomic uint64_t switch_at;
void window_look(void);

/* Makes this thread one that records; NULL if nothing is recorded (any more). */
struct thread *thread_begin(void);

/* filter.c: kinds of calls that are not recorded, as bits. */
#define LEFT_KINDS (LEFT_IO + 1)
extern _Atomic unsigned left_out;
bool call_left_out(int call);

/* Looks at a window that is full: whether its records came too fast, and which kind is left out from
 * now on; 0 if none. */
int filter_look(const struct record *from, const struct record *to, uint64_t ns);

/* Maps more of the file, see buffer.c. */
void advance(struct thread *);

static inline uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The thread if this process records, else NULL. Starts nothing: process_start() does. */
static inline struct thread *thread_here(void)
{
    struct thread *t = this_thread;
    return LIKELY(t != NULL) ? t : thread_begin();
}

/* Makes room for so many records, at most MOST_ROOM. */
static inline void room(struct thread *t, int records)
{
    if (UNLIKELY(t->end - t->next < records))
        advance(t);
}

/* The same where a time was taken already: returns it, or a later one if taking room took time. */
static inline uint64_t room_at(struct thread *t, int records, uint64_t time)
{
    if (LIKELY(t->end - t->next >= records))
        return time;
    advance(t);
    return t->summary ? time : now(); /* sums need no room */
}

/* A process can be killed between any two instructions: the kind is written last, and a record
 * without a kind ends the file. */
static inline void put(struct thread *t, uint64_t time, enum kind kind, int call, uint32_t a,
                       int64_t b, int64_t c)
{
    struct record *record = t->next++;
    record->time = time;
    record->call = (uint16_t)call;
    record->a = a;
    record->b = b;
    record->c = c;
    atomic_signal_fence(memory_order_release);
    record->kind = (uint16_t)kind;
}

/* Where something may begin to be recorded. */
static inline void window_check(void)
{
    if (UNLIKELY(atomic_load_explicit(&switch_at, memory_order_relaxed) != NEVER))
        window_look();
}

static inline int watching(void)
{
    return atomic_load_explicit(&watch, memory_order_relaxed);
}

static inline bool is_left_out(enum left which)
{
    return UNLIKELY(watching() & LEAVING) &&
           atomic_load_explicit(&left_out, memory_order_relaxed) >> which & 1;
}

#endif
