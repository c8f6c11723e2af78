/* Explicit tasks of libgomp.
 *
 * A task is a function and data, which the runtime copies when the task is made, by a function of
 * the program's where there is one. It gets functions of ours and data that hold those of the
 * program behind what we want to know:
 *
 *     | struct head | padding | data of the program |
 *
 * The tasks of a taskloop without a copying function get none of ours either: the runtime would lay
 * out the data of all of them on the stack. They are recorded as created when they begin.
 */
#define _GNU_SOURCE
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "gomp.h"
#include "meta.h"

typedef void body(void *);
typedef void copier(void *, void *);

#define DETACHABLE (1u << 13) /* flag of GCC: the data begin with an event that the runtime sets */

struct head {
    uint64_t iterations[2]; /* set by the runtime, of a taskloop */
    uintptr_t *reductions;  /* where the runtime looks for those of a taskloop */
    body *body;
    copier *copy;
    const void *from; /* the data of the program, in the original only */
    size_t size, offset;
    int64_t id; /* 0: none yet */
    bool loop;
};

static void *data_of(struct head *head)
{
    return (char *)head + head->offset;
}

static void create(struct head *head)
{
    struct thread *t = gomp_here();
    head->id = (int64_t)next_task();
    if (t)
        task_create(t, head->id, (void *)(uintptr_t)head->body);
}

static void copy(void *to, void *from)
{
    struct head *head = to;
    *head = *(const struct head *)from;
    if (head->loop)
        create(head);
    if (head->copy)
        head->copy(data_of(head), (void *)(uintptr_t)head->from);
    else if (head->size)
        memcpy(data_of(head), head->from, head->size);
}

static void run(void *data)
{
    struct head *head = data;
    const void *function = (void *)(uintptr_t)head->body;
    if (head->loop)
        memcpy(data_of(head), head->iterations, sizeof head->iterations);
    if (head->loop && !head->copy)
        create(head);
    int64_t id = head->id;
    struct thread *t = gomp_here();
    if (t)
        task_run(t, id, function);
    head->body(data_of(head));
    t = gomp_here();
    if (t)
        task_stop(t, id, function);
}

static size_t alignment(long wanted)
{
    size_t least = alignof(max_align_t);
    return wanted > 0 && (size_t)wanted > least ? (size_t)wanted : least;
}

static struct head make(body *f, void *data, copier *c, long size, size_t align)
{
    function_number((void *)(uintptr_t)f);
    return (struct head){.body = f,
                         .copy = c,
                         .from = data,
                         .size = (size_t)size,
                         .offset = (sizeof(struct head) + align - 1) / align * align};
}

/* Later versions of GCC have added the last parameters. Passed on to a runtime that does not know
 * them, or taken from a caller that did not pass them, they are not looked at. */
EXPORTED void GOMP_task(body *fn, void *data, copier *cpyfn, long size, long align, bool deferred,
                        unsigned flags, void **depend, int priority, void *detach)
{
    KNOW(GOMP_task);
    if (!gomp_here() || !fn || size < 0) {
        next(fn, data, cpyfn, size, align, deferred, flags, depend, priority, detach);
        return;
    }
    size_t aligned = alignment(align);
    struct head head = make(fn, data, cpyfn, size, aligned);
    create(&head);
    if (flags & DETACHABLE) {
        note("tasks with a detach clause: their runtime is not recorded");
        next(fn, data, cpyfn, size, align, deferred, flags, depend, priority, detach);
        return;
    }
    next(run, &head, copy, (long)head.offset + size, (long)aligned, deferred, flags, depend,
         priority, detach);
}

/* The head for a taskloop; NULL if it is not recorded. */
static struct head *make_loop(body *f, void *data, copier *c, long size, size_t align)
{
    if (!gomp_here() || size < (long)sizeof(((struct head *)0)->iterations))
        return NULL;
    struct head head = make(f, data, c, size, align);
    size_t whole = (head.offset + (size_t)size + align - 1) / align * align;
    struct head *made = aligned_alloc(align, whole);
    if (!made) {
        note("not enough memory for the tasks of a taskloop: not recorded");
        return NULL;
    }
    head.loop = true;
    if ((size_t)size >= offsetof(struct head, reductions) + sizeof head.reductions)
        memcpy(&head.reductions, (char *)data + offsetof(struct head, reductions),
               sizeof head.reductions);
    *made = head;
    if (!c)
        memcpy(data_of(made), data, (size_t)size);
    return made;
}

/* Where the bounds of loops have no more than 32 bits, the data begin otherwise. */
#define TASKLOOP(name, type)                                                                       \
    EXPORTED void name(body *fn, void *data, copier *cpyfn, long size, long align, unsigned flags, \
                       unsigned long tasks, int priority, type first, type last, type step)        \
    {                                                                                              \
        KNOW(name);                                                                                \
        size_t aligned = alignment(align);                                                         \
        struct head *head =                                                                        \
            sizeof(type) == 8 ? make_loop(fn, data, cpyfn, size, aligned) : NULL;                  \
        if (!head) {                                                                               \
            next(fn, data, cpyfn, size, align, flags, tasks, priority, first, last, step);         \
            return;                                                                                \
        }                                                                                          \
        next(run, head, cpyfn ? copy : NULL, (long)head->offset + size, (long)aligned, flags,      \
             tasks, priority, first, last, step);                                                  \
        free(head);                                                                                \
    }

TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, unsigned long long)
