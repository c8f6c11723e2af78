/* MPI's start and end, and the switch that programs have for tools (MPI_Pcontrol).
 *
 * The end is noticed in the callback of an attribute of MPI_COMM_SELF, which MPI_Finalize deletes
 * before all else: it is called whatever language the program is written in, and MPI still works.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clocks.h"
#include "communicators.h"
#include "cpus.h"
#include "loaded.h"
#include "messages.h"
#include "meta.h"
#include "process.h"
#include "summary.h"

bool mpi_ready;
static int own_rank;
static int starting; /* calls of MPI_Init* under way: what they call themselves is not another */

struct thread *call_unready(void)
{
    if (!next_found)
        next_find();
    return NULL;
}

static int at_finalize(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    clocks_end(own_rank);
    if (!mpi_ready)
        return MPI_SUCCESS;
    devices_note();
    struct thread *t = thread_here();
    summary_end();
    if (t)
        usage_end(t);
    struct line line; /* behind the usage, which is of nothing later */
    line_begin(&line, "finalize");
    line_number(&line, "time", (int64_t)now());
    line_end(&line);
    return MPI_SUCCESS;
}

static int copy_nothing(MPI_Comm comm, int key, void *state, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)state, (void)in, (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

static void watch_for_finalize(void)
{
    int key = MPI_KEYVAL_INVALID;
    pmpi.Comm_create_keyval(copy_nothing, at_finalize, &key, NULL);
    pmpi.Comm_set_attr(handles.self, key, NULL);
}

/* What the launcher calls this run; NULL if it does not say. */
static const char *job(void)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"};
    static char step[128];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]))
            return getenv(names[i]);
    const char *of_job = getenv("SLURM_JOB_ID"), *of_step = getenv("SLURM_STEP_ID");
    if (!of_job || !of_step)
        return NULL;
    snprintf(step, sizeof step, "%s.%s", of_job, of_step);
    return step;
}

static void tell_mpi(int rank, int size, int level)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    int length;
    pmpi.Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0';
    MPI_Comm parent = handles.no_comm;
    pmpi.Comm_get_parent(&parent);

    struct line line;
    line_begin(&line, "mpi");
    line_number(&line, "rank", rank);
    line_number(&line, "size", size);
    line_number(&line, "thread_level",
                (level > MPI_THREAD_SINGLE) + (level > MPI_THREAD_FUNNELED) +
                    (level > MPI_THREAD_SERIALIZED)); /* the standard's ABI has other numbers */
    line_text(&line, "library", library);
    line_text(&line, "job", job());
    line_number(&line, "spawned", parent != handles.no_comm);
    line_number(&line, "time", (int64_t)now());
    line_end(&line);
    if (parent != handles.no_comm)
        note("this process was spawned: messages to and from its parents are not matched");
}

/* NULL: nothing is recorded. */
IN_WRAPPER struct thread *init_begin(int call)
{
    if (!next_found)
        next_find();
    if (starting++ > 0 || mpi_ready || !process_start())
        return NULL;
    struct thread *t = thread_here();
    if (!t || t->depth)
        return NULL;
    window_before_init();
    call_enter(t, call, 1);
    return t;
}

static void can_be_used(bool records)
{
    int size, level = MPI_THREAD_SINGLE;
    pmpi.Comm_rank(handles.world, &own_rank);
    pmpi.Comm_size(handles.world, &size);
    if (records) {
        pmpi.Query_thread(&level);
        many_threads = level == MPI_THREAD_MULTIPLE;
        tell_mpi(own_rank, size, level);
        communicators_start(own_rank, size);
        process_share(size);
    }
    watch_for_finalize();
    clocks_start(own_rank, size, records);
    mpi_ready = records;
}

static void init_end(struct thread *t, int call, int result)
{
    if (--starting > 0)
        return;
    if (result == MPI_SUCCESS && !mpi_ready && process_wanted())
        can_be_used(t != NULL);
    if (!t)
        return;
    call_return(t);
    call_leave(t, call, 0);
    summary_begin();
    usage_begin(t); /* while MPI starts its launcher takes processors, too */
    window_after_init();
}

WRAPPER(MPI_Init)(int *count, char ***arguments)
{
    struct thread *t = init_begin(CALL_Init);
    int result = NEXT(Init)(count, arguments);
    init_end(t, CALL_Init, result);
    return result;
}

WRAPPER(MPI_Init_thread)(int *count, char ***arguments, int required, int *provided)
{
    struct thread *t = init_begin(CALL_Init_thread);
    int result = NEXT(Init_thread)(count, arguments, required, provided);
    init_end(t, CALL_Init_thread, result);
    return result;
}

WRAPPER(MPI_Finalize)(void)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Finalize)();
    call_enter(t, CALL_Finalize, 1);
    int result = NEXT(Finalize)();
    if (result == MPI_SUCCESS)
        mpi_ready = false;
    call_return(t);
    call_leave(t, CALL_Finalize, 0);
    return result;
}

/* The last that is heard of this process. */
WRAPPER(MPI_Abort)(MPI_Comm comm, int code)
{
    struct thread *t = call_begin();
    if (t) {
        call_enter(t, CALL_Abort, communicator_of(t, comm)->id);
        process_end("abort");
    }
    return NEXT(Abort)(comm, code);
}

WRAPPER(MPI_Pcontrol)(const int level, ...)
{
    /* What follows the level is not for us, and cannot be passed on. */
    if (!next_found)
        next_find();
    tracing(level != 0);
    return pmpi.Pcontrol(level);
}
