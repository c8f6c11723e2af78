/* As much of OpenMP's tool interface (OMPT, OpenMP 5.2, chapters 19 and 20) as the tracer uses.
 *
 * A header of our own: not every compiler comes with one, and the folder that holds clang's also
 * holds headers that other compilers must not see. The numbers are those of the specification.
 */
#ifndef POPMODEL_OMPT_H
#define POPMODEL_OMPT_H

#include <stdint.h>

typedef union ompt_data_t {
    uint64_t value;
    void *ptr;
} ompt_data_t;

typedef void (*ompt_interface_fn_t)(void);
typedef ompt_interface_fn_t (*ompt_function_lookup_t)(const char *name);
typedef void (*ompt_callback_t)(void);
typedef int (*ompt_set_callback_t)(int event, ompt_callback_t);

typedef struct ompt_start_tool_result_t {
    int (*initialize)(ompt_function_lookup_t, int device, ompt_data_t *tool); /* 0: no tool */
    void (*finalize)(ompt_data_t *tool);
    ompt_data_t tool_data;
} ompt_start_tool_result_t;

/* What setting a callback returns, up to the first where it will be called. */
enum ompt_set { OMPT_SET_ERROR = 0, OMPT_SET_NEVER = 1 };

enum ompt_event {
    OMPT_PARALLEL_BEGIN = 3,
    OMPT_PARALLEL_END = 4,
    OMPT_TASK_CREATE = 5,
    OMPT_TASK_SCHEDULE = 6,
    OMPT_IMPLICIT_TASK = 7,
    OMPT_SYNC_REGION_WAIT = 16,
    OMPT_MUTEX_RELEASED = 17,
    OMPT_WORK = 20,
    OMPT_SYNC_REGION = 23,
    OMPT_MUTEX_ACQUIRE = 26,
    OMPT_MUTEX_ACQUIRED = 27
};

enum ompt_scope { OMPT_BEGIN = 1, OMPT_END = 2, OMPT_BEGINEND = 3 };

enum ompt_sync_region {
    OMPT_BARRIER = 1,          /* until 5.0 */
    OMPT_BARRIER_IMPLICIT = 2, /* until 5.0 */
    OMPT_BARRIER_EXPLICIT = 3,
    OMPT_BARRIER_IMPLEMENTATION = 4,
    OMPT_TASKWAIT = 5,
    OMPT_TASKGROUP = 6,
    OMPT_BARRIER_IMPLICIT_WORKSHARE = 8, /* from 5.1 on, this and the next */
    OMPT_BARRIER_IMPLICIT_PARALLEL = 9
};

enum ompt_work { OMPT_SECTIONS = 2, OMPT_SINGLE_EXECUTOR = 3, OMPT_TASKLOOP = 7 };

enum ompt_mutex {
    OMPT_MUTEX_LOCK = 1,
    OMPT_MUTEX_TEST_LOCK = 2,
    OMPT_MUTEX_NEST_LOCK = 3,
    OMPT_MUTEX_TEST_NEST_LOCK = 4,
    OMPT_MUTEX_CRITICAL = 5,
    OMPT_MUTEX_ATOMIC = 6,
    OMPT_MUTEX_ORDERED = 7
};

enum ompt_task_flag {
    OMPT_TASK_INITIAL = 0x1,
    OMPT_TASK_EXPLICIT = 0x4,
    OMPT_TASK_UNTIED = 0x10000000
};

/* Why a thread leaves a task. The messages about events of detached ones leave none. */
enum ompt_task_status {
    OMPT_TASK_YIELD = 2,
    OMPT_EARLY_FULFILL = 5,
    OMPT_LATE_FULFILL = 6,
    OMPT_TASK_SWITCH = 7
};

#endif
