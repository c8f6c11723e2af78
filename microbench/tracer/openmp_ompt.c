/* OpenMP by the tool interface of the runtime (OMPT): LLVM's and those that come from it.
 *
 * The runtime looks for ompt_start_tool() when it starts, finds it here, and calls back.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "guards.h"
#include "meta.h"
#include "ompt.h"
#include "openmp.h"
#include "openmp_ompt.h"

_Atomic bool ompt_in_use;
static char runtime[256];
static void tell(void);

/* Regions that are nested deeper are not recorded. The end of a worker's part can come with the
 * next region only, so its memory cannot be the stack of any function. */
#define DEEPEST 32
static __thread struct member members[DEEPEST] __attribute__((tls_model("initial-exec")));
static __thread int depth __attribute__((tls_model("initial-exec")));

/* Where the taskloop was called that this thread is making the tasks of: they are made inside of
 * the runtime. */
static __thread const void *taskloop __attribute__((tls_model("initial-exec")));

/* What a task's label has for a level. */
enum { UNTIED = 1, BEGUN = 2 };

static uint64_t pack(struct label label)
{
    return label.id << 24 | (uint64_t)(label.level & 0xff) << 16 | label.function;
}

static struct label unpack(uint64_t value)
{
    return (struct label){
        .id = value >> 24, .level = value >> 16 & 0xff, .function = value & 0xffff};
}

/* A call returns to the address behind it, which can belong to the next line. */
static const void *call_before(const void *returns_to)
{
    return returns_to ? (const char *)returns_to - 1 : NULL;
}

static void on_parallel_begin(ompt_data_t *task, const void *frame, ompt_data_t *region,
                              unsigned threads, int flags, const void *returns_to)
{
    (void)task, (void)frame, (void)flags;
    region->value = 0;
    struct thread *t = process_start() ? thread_here() : NULL;
    if (!t)
        return;
    window_check();
    if (UNLIKELY(watching() & CLOSED))
        return;
    tell();
    const void *function = call_before(returns_to);
    struct label label = {next_region(), team_level() + 1, function_number(function)};
    region->value = pack(label);
    region_begin(t, threads, (int64_t)label.id, function);
}

static void on_parallel_end(ompt_data_t *region, ompt_data_t *task, int flags,
                            const void *returns_to)
{
    (void)task, (void)flags, (void)returns_to;
    struct thread *t = region && region->value ? thread_here() : NULL;
    if (!t)
        return;
    struct label label = unpack(region->value);
    region_end(t, (int64_t)label.id, function_address(label.function));
}

static void begin_part(ompt_data_t *region, unsigned number)
{
    if (depth++ >= DEEPEST)
        note("parallel regions nested more than 32 deep: not recorded");
    struct thread *t = depth <= DEEPEST && region && region->value ? thread_here() : NULL;
    if (depth <= DEEPEST)
        members[depth - 1] = (struct member){.ended = true, .outer = openmp.here};
    if (!t)
        return;
    struct label label = unpack(region->value);
    struct member *member = &members[depth - 1];
    *member = (struct member){.region = (int64_t)label.id,
                              .function = function_address(label.function),
                              .level = label.level,
                              .number = number};
    member_begin(t, member);
}

static void end_member(void)
{
    struct thread *t = openmp.here && !openmp.here->ended ? thread_here() : NULL;
    if (t)
        member_end(t, openmp.here);
}

static void on_implicit_task(int scope, ompt_data_t *region, ompt_data_t *task, unsigned threads,
                             unsigned number, int flags)
{
    (void)threads;
    if (flags & OMPT_TASK_INITIAL)
        return;
    if (task)
        task->value = 0; /* explicit tasks have another */
    if (scope == OMPT_BEGIN) {
        begin_part(region, number);
    } else if (depth > 0) {
        if (--depth >= DEEPEST)
            return;
        if (openmp.here == &members[depth]) {
            end_member(); /* where there was no barrier: a team of one */
            openmp.here = members[depth].outer;
        }
    }
}

/* Runtimes of version 5.0 do not say which barrier ends the region. On workers that one has no
 * address, and on the master that of the region. */
static bool ends_region(int kind, const void *returns_to)
{
    if (kind != OMPT_BARRIER_IMPLICIT)
        return kind == OMPT_BARRIER_IMPLICIT_PARALLEL;
    return !returns_to || (openmp.here && call_before(returns_to) == openmp.here->function);
}

static int construct_of(int kind)
{
    switch (kind) {
    case OMPT_BARRIER:
    case OMPT_BARRIER_EXPLICIT:
        return BARRIER;
    case OMPT_BARRIER_IMPLICIT:
    case OMPT_BARRIER_IMPLICIT_WORKSHARE:
    case OMPT_BARRIER_IMPLEMENTATION:
        return IMPLICIT_BARRIER;
    case OMPT_TASKWAIT:
        return TASKWAIT;
    default:
        return 0;
    }
}

/* The end of the barrier that ends a region comes to a worker when it is needed for the next
 * region; so the begin of that barrier is the end of its part. */
static void on_sync_region(int kind, int scope, ompt_data_t *region, ompt_data_t *task,
                           const void *returns_to)
{
    (void)region, (void)task;
    if (openmp.here && openmp.here->ended && construct_of(kind) != TASKWAIT)
        return;
    if (ends_region(kind, returns_to)) {
        if (scope == OMPT_BEGIN)
            end_member();
        return;
    }
    int construct = construct_of(kind);
    struct thread *t = construct ? thread_here() : NULL;
    if (!t)
        return;
    if (scope & OMPT_BEGIN) {
        if (construct != TASKWAIT)
            single_ends();
        construct_enter(t, construct, 0);
    }
    if (scope & OMPT_END)
        construct_leave(t, construct, 0);
}

/* A task group spans the work in it; only its end waits. */
static void on_sync_region_wait(int kind, int scope, ompt_data_t *region, ompt_data_t *task,
                                const void *returns_to)
{
    (void)region, (void)task, (void)returns_to;
    struct thread *t = kind == OMPT_TASKGROUP ? thread_here() : NULL;
    if (!t)
        return;
    if (scope & OMPT_BEGIN)
        construct_enter(t, TASKGROUP, 0);
    if (scope & OMPT_END)
        construct_leave(t, TASKGROUP, 0);
}

static void on_mutex_acquire(int kind, unsigned hint, unsigned implementation, uint64_t lock,
                             const void *returns_to)
{
    (void)kind, (void)hint, (void)implementation, (void)lock, (void)returns_to;
    struct thread *t = thread_here();
    if (t)
        lock_wanted(t);
}

static enum guard guard_of(int kind)
{
    return kind == OMPT_MUTEX_CRITICAL ? CRITICALS : kind == OMPT_MUTEX_ATOMIC ? ATOMICS : LOCKS;
}

static void on_mutex_acquired(int kind, uint64_t lock, const void *returns_to)
{
    (void)returns_to;
    struct thread *t = thread_here();
    if (!t)
        return;
    if (kind == OMPT_MUTEX_ORDERED)
        lock_got(t, ORDERED, 0, 0);
    else
        guard_got(t, guard_of(kind), (int64_t)lock);
}

static void on_mutex_released(int kind, uint64_t lock, const void *returns_to)
{
    (void)returns_to;
    struct thread *t = kind == OMPT_MUTEX_ORDERED ? NULL : thread_here();
    if (!t)
        return;
    enum guard which = guard_of(kind);
    guard_leaves(t, which, (int64_t)lock);
    construct_leave(t, which == LOCKS ? LOCK_HOLD : CRITICAL_HOLD, (int64_t)lock);
}

static void on_work(int kind, int scope, ompt_data_t *region, ompt_data_t *task, uint64_t count,
                    const void *returns_to)
{
    (void)region, (void)task, (void)count;
    if (kind == OMPT_TASKLOOP)
        taskloop = scope == OMPT_BEGIN ? returns_to : NULL;
    if (kind != OMPT_SINGLE_EXECUTOR && kind != OMPT_SECTIONS)
        return;
    struct thread *t = thread_here();
    if (!t)
        return;
    /* A single construct of code for libgomp begins and does not end. */
    if (scope & OMPT_BEGIN)
        kind == OMPT_SECTIONS ? construct_enter(t, SECTIONS, 0) : single_begins(t);
    if (scope & OMPT_END)
        kind == OMPT_SECTIONS ? construct_leave(t, SECTIONS, 0) : single_ends();
}

static void on_task_create(ompt_data_t *by, const void *frame, ompt_data_t *task, int flags,
                           int dependences, const void *returns_to)
{
    (void)by, (void)frame, (void)dependences;
    if (!(flags & OMPT_TASK_EXPLICIT))
        return;
    task->value = 0;
    struct thread *t = thread_here();
    if (!t)
        return;
    const void *function = call_before(taskloop ? taskloop : returns_to);
    int state = flags & OMPT_TASK_UNTIED ? UNTIED : 0;
    struct label label = {next_task(), state, function_number(function)};
    task->value = pack(label);
    task_create(t, (int64_t)label.id, function);
}

/* A thread that has to wait in a task carries out others meanwhile, and comes back to it when these
 * are done: they are recorded inside of it. Untied tasks can go on elsewhere: each piece for
 * itself. */
static void leave_task(struct thread *t, uint64_t value, int status)
{
    struct label label = unpack(value);
    bool done = status != OMPT_TASK_YIELD && status != OMPT_TASK_SWITCH;
    if (done || label.level & UNTIED)
        task_stop(t, (int64_t)label.id, function_address(label.function));
}

static void go_on_with(struct thread *t, ompt_data_t *task)
{
    struct label label = unpack(task->value);
    if (label.level & BEGUN && !(label.level & UNTIED))
        return;
    label.level |= BEGUN;
    task->value = pack(label);
    task_run(t, (int64_t)label.id, function_address(label.function));
}

static void on_task_schedule(ompt_data_t *before, int status, ompt_data_t *next)
{
    if (status == OMPT_EARLY_FULFILL || status == OMPT_LATE_FULFILL)
        return;
    struct thread *t = thread_here();
    if (!t)
        return;
    if (before && before->value)
        leave_task(t, before->value, status);
    if (next && next->value)
        go_on_with(t, next);
}

static const struct {
    enum ompt_event event;
    ompt_callback_t callback;
    const char *lacking;
} callbacks[] = {
#define LACKS(what) "this OpenMP runtime does not report " what " to tools: not recorded"
    {OMPT_PARALLEL_BEGIN, (ompt_callback_t)on_parallel_begin, LACKS("parallel regions")},
    {OMPT_PARALLEL_END, (ompt_callback_t)on_parallel_end, LACKS("the ends of regions")},
    {OMPT_IMPLICIT_TASK, (ompt_callback_t)on_implicit_task, LACKS("the threads of regions")},
    {OMPT_SYNC_REGION, (ompt_callback_t)on_sync_region, LACKS("barriers")},
    {OMPT_SYNC_REGION_WAIT, (ompt_callback_t)on_sync_region_wait, LACKS("waits for task groups")},
    {OMPT_MUTEX_ACQUIRE, (ompt_callback_t)on_mutex_acquire, LACKS("waits for locks")},
    {OMPT_MUTEX_ACQUIRED, (ompt_callback_t)on_mutex_acquired, LACKS("locks")},
    {OMPT_MUTEX_RELEASED, (ompt_callback_t)on_mutex_released, LACKS("the release of locks")},
    {OMPT_WORK, (ompt_callback_t)on_work, LACKS("single and sections")},
    {OMPT_TASK_CREATE, (ompt_callback_t)on_task_create, LACKS("the creation of tasks")},
    {OMPT_TASK_SCHEDULE, (ompt_callback_t)on_task_schedule, LACKS("tasks")},
#undef LACKS
};
#define CALLBACKS (sizeof callbacks / sizeof *callbacks)
static bool lacking[CALLBACKS];

/* The runtime starts before there is anything to record, and often there never is. */
static void tell(void)
{
    static _Atomic bool told;
    if (LIKELY(atomic_load_explicit(&told, memory_order_relaxed)) || atomic_exchange(&told, true))
        return;
    openmp_tell(BY_OMPT, runtime);
    for (size_t i = 0; i < CALLBACKS; i++)
        if (lacking[i])
            note(callbacks[i].lacking);
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *tool)
{
    (void)device, (void)tool;
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    if (!set)
        return 0;
    for (size_t i = 0; i < CALLBACKS; i++)
        lacking[i] = set(callbacks[i].event, callbacks[i].callback) <= OMPT_SET_NEVER;
    atomic_store(&ompt_in_use, true);
    return 1;
}

/* There is nothing left to do: files are closed at the end of the process, which can come first. */
static void finalize(ompt_data_t *tool)
{
    (void)tool;
}

EXPORTED ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *name)
{
    static ompt_start_tool_result_t tool = {initialize, finalize, {0}};
    (void)version;
    enum openmp_how wanted = openmp_wanted();
    if (!process_wanted() || (wanted != BY_CHOICE && wanted != BY_OMPT))
        return NULL;
    snprintf(runtime, sizeof runtime, "%s", name ? name : "");
    return &tool;
}
