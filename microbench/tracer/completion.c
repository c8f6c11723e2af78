/* The ends of requests.
 *
 * MPI overwrites the handles of what has completed, and other threads may get them again at once,
 * so what is known of them is taken before the call and put back if it has not completed. The
 * statuses of receives are needed even where the program ignores them: then MPI is given ours.
 *
 * Open MPI's procedures for Fortran return at once where there are no requests, without calling
 * those of C: these calls are seen here only.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "messages.h"
#include "meta.h"

static bool is_cancelled(const MPI_Status *status)
{
    int flag = 0;
    return pmpi.Test_cancelled(status, &flag) == MPI_SUCCESS && flag;
}

/* A request that MPI has completed; `received` tells whether a receive has got its message. Up to
 * two records, or room for more is made. */
static void complete(struct thread *t, struct request *r, const MPI_Status *status, bool received)
{
    if (r->kind == RECEIVE_REQUEST && r->active) {
        if (r->told)
            put_told_receive(t, r);
        else if (received && !((r->cancelled || many_threads) && is_cancelled(status)))
            put_receive(t, r->communicator, status, r->number);
    } else if (r->kind == EXCHANGE_REQUEST && r->active) {
        put_exchanged(t, r->communicator, r->exchange, r->number);
    } else if (r->kind == COLLECTIVE_REQUEST && t->entered) {
        put(t, t->time, COLLECTED, 0, 0, r->number, 0);
    } else if (r->kind == DUPLICATE_REQUEST) {
        communicator_keep(r->duplicate, r->communicator);
    }
    if (r->persistent) {
        r->active = false;
        request_put_back(r);
    } else {
        request_drop(r);
    }
}

/* Memory of at least `size` bytes that this thread keeps; NULL if there is none. */
static void *scratch(struct thread *t, int which, size_t size)
{
    if (t->scratch_size[which] < size) {
        void *more = realloc(t->scratch[which], 2 * size);
        if (!more) {
            note("not enough memory for a call on many requests: what it completed is not recorded");
            return NULL;
        }
        t->scratch[which] = more;
        t->scratch_size[which] = 2 * size;
    }
    return t->scratch[which];
}

/* Takes the requests of a call that are known: NULL where none is, NULL if there is none at all. */
static struct request **take_all(struct thread *t, int n, const MPI_Request requests[])
{
    if (n <= 0 || !request_any())
        return NULL;
    struct request **all = scratch(t, 0, (size_t)n * sizeof *all);
    bool any = false;
    for (int i = 0; all && i < n; i++) {
        all[i] = request_take(requests[i]);
        any = any || all[i];
    }
    return any ? all : NULL;
}

/* Those that have completed are NULL by now. */
static void put_back_all(int n, struct request **all)
{
    for (int i = 0; all && i < n; i++)
        if (all[i])
            request_put_back(all[i]);
}

static MPI_Status *own_statuses(struct thread *t, int n, MPI_Status *given,
                                struct request ***requests)
{
    if (given != MPI_STATUSES_IGNORE || !*requests)
        return given;
    MPI_Status *own = scratch(t, 1, (size_t)n * sizeof *own);
    if (!own) {
        put_back_all(n, *requests);
        *requests = NULL;
    }
    return own ? own : given;
}

/* Whether a call on many requests has told the state of each, though some may have failed. */
static bool has_told(int result)
{
    int class = MPI_SUCCESS;
    if (LIKELY(result == MPI_SUCCESS))
        return true;
    return pmpi.Error_class(result, &class) == MPI_SUCCESS && class == MPI_ERR_IN_STATUS;
}

/* MPI sets the field only if it says that some have failed. */
static int error_of(int result, const MPI_Status *status)
{
    return result == MPI_SUCCESS ? MPI_SUCCESS : status->MPI_ERROR;
}

static void complete_all(struct thread *t, int n, struct request **all, int result,
                         const MPI_Status *statuses)
{
    for (int i = 0; all && i < n; i++) {
        int error = error_of(result, &statuses[i]);
        if (!all[i] || error == MPI_ERR_PENDING)
            continue;
        t->time = room_at(t, 8, t->time);
        complete(t, all[i], &statuses[i], has_received(error));
        all[i] = NULL;
    }
}

static void complete_some(struct thread *t, int n, struct request **all, const int *indices,
                          int result, const MPI_Status *statuses)
{
    for (int i = 0; all && i < n; i++) {
        struct request **r = &all[indices[i]];
        if (!*r)
            continue;
        t->time = room_at(t, 8, t->time);
        complete(t, *r, &statuses[i], has_received(error_of(result, &statuses[i])));
        *r = NULL;
    }
}

/* One request, or one of many: here the call fails with the error of the request itself. */
static void complete_one(struct thread *t, struct request **r, int result, MPI_Request after,
                         const MPI_Status *status)
{
    if (!*r || !(has_received(result) || (after == handles.no_request && !(*r)->persistent)))
        return;
    complete(t, *r, status, has_received(result));
    *r = NULL;
}

WRAPPER(MPI_Wait)(MPI_Request *request, MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Wait)(request, status);
    struct request *r = request_take(*request);
    MPI_Status own;
    if (r && status == MPI_STATUS_IGNORE)
        status = &own;
    call_enter(t, CALL_Wait, 0);
    int result = NEXT(Wait)(request, status);
    call_return(t);
    complete_one(t, &r, result, *request, status);
    put_back_all(1, &r);
    call_leave(t, CALL_Wait, 0);
    return result;
}

WRAPPER(MPI_Waitall)(int n, MPI_Request requests[], MPI_Status *statuses)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Waitall)(n, requests, statuses);
    struct request **all = take_all(t, n, requests);
    statuses = own_statuses(t, n, statuses, &all);
    call_enter(t, CALL_Waitall, 0);
    int result = NEXT(Waitall)(n, requests, statuses);
    call_return(t);
    if (has_told(result))
        complete_all(t, n, all, result, statuses);
    put_back_all(n, all);
    call_leave(t, CALL_Waitall, 0);
    return result;
}

WRAPPER(MPI_Waitany)(int n, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Waitany)(n, requests, index, status);
    struct request **all = take_all(t, n, requests);
    MPI_Status own;
    if (all && status == MPI_STATUS_IGNORE)
        status = &own;
    call_enter(t, CALL_Waitany, 0);
    int result = NEXT(Waitany)(n, requests, index, status);
    call_return(t);
    if (all && has_received(result) && *index != MPI_UNDEFINED)
        complete_one(t, &all[*index], result, requests[*index], status);
    put_back_all(n, all);
    call_leave(t, CALL_Waitany, 0);
    return result;
}

WRAPPER(MPI_Waitsome)(int n, MPI_Request requests[], int *count, int indices[],
                      MPI_Status *statuses)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Waitsome)(n, requests, count, indices, statuses);
    struct request **all = take_all(t, n, requests);
    statuses = own_statuses(t, n, statuses, &all);
    call_enter(t, CALL_Waitsome, 0);
    int result = NEXT(Waitsome)(n, requests, count, indices, statuses);
    call_return(t);
    if (has_told(result) && *count != MPI_UNDEFINED)
        complete_some(t, *count, all, indices, result, statuses);
    put_back_all(n, all);
    call_leave(t, CALL_Waitsome, 0);
    return result;
}

WRAPPER(MPI_Test)(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Test)(request, flag, status);
    struct request *r = request_take(*request);
    MPI_Status own;
    if (r && status == MPI_STATUS_IGNORE)
        status = &own;
    poll_enter(t, CALL_Test, 0);
    int result = NEXT(Test)(request, flag, status);
    call_return(t);
    bool done = has_received(result) && *flag;
    if (done)
        complete_one(t, &r, result, *request, status);
    put_back_all(1, &r);
    poll_leave(t, CALL_Test, done);
    return result;
}

WRAPPER(MPI_Testall)(int n, MPI_Request requests[], int *flag, MPI_Status *statuses)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Testall)(n, requests, flag, statuses);
    struct request **all = take_all(t, n, requests);
    statuses = own_statuses(t, n, statuses, &all);
    poll_enter(t, CALL_Testall, 0);
    int result = NEXT(Testall)(n, requests, flag, statuses);
    call_return(t);
    bool done = has_told(result) && (*flag || result != MPI_SUCCESS);
    if (done)
        complete_all(t, n, all, result, statuses);
    put_back_all(n, all);
    poll_leave(t, CALL_Testall, done);
    return result;
}

WRAPPER(MPI_Testany)(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Testany)(n, requests, index, flag, status);
    struct request **all = take_all(t, n, requests);
    MPI_Status own;
    if (all && status == MPI_STATUS_IGNORE)
        status = &own;
    poll_enter(t, CALL_Testany, 0);
    int result = NEXT(Testany)(n, requests, index, flag, status);
    call_return(t);
    bool done = has_received(result) && *flag && *index != MPI_UNDEFINED;
    if (all && done)
        complete_one(t, &all[*index], result, requests[*index], status);
    put_back_all(n, all);
    poll_leave(t, CALL_Testany, done);
    return result;
}

WRAPPER(MPI_Testsome)(int n, MPI_Request requests[], int *count, int indices[],
                      MPI_Status *statuses)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Testsome)(n, requests, count, indices, statuses);
    struct request **all = take_all(t, n, requests);
    statuses = own_statuses(t, n, statuses, &all);
    poll_enter(t, CALL_Testsome, 0);
    int result = NEXT(Testsome)(n, requests, count, indices, statuses);
    call_return(t);
    bool done = has_told(result) && *count != MPI_UNDEFINED && *count > 0;
    if (done)
        complete_some(t, *count, all, indices, result, statuses);
    put_back_all(n, all);
    poll_leave(t, CALL_Testsome, done);
    return result;
}

/* Completes nothing: the request is still to be waited for. */
WRAPPER(MPI_Request_get_status)(MPI_Request request, int *flag, MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Request_get_status)(request, flag, status);
    poll_enter(t, CALL_Request_get_status, 0);
    int result = NEXT(Request_get_status)(request, flag, status);
    call_return(t);
    poll_leave(t, CALL_Request_get_status, result == MPI_SUCCESS && *flag);
    return result;
}

WRAPPER(MPI_Request_free)(MPI_Request *request)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Request_free)(request);
    struct request *r = request_take(*request);
    call_enter(t, CALL_Request_free, 0);
    int result = NEXT(Request_free)(request);
    call_return(t);
    if (r && result == MPI_SUCCESS) {
        if (r->active && r->kind == RECEIVE_REQUEST)
            note("a receive was abandoned with MPI_Request_free: whether it got a message is not "
                 "known");
        request_drop(r);
        r = NULL;
    }
    put_back_all(1, &r);
    call_leave(t, CALL_Request_free, 0);
    return result;
}

WRAPPER(MPI_Cancel)(MPI_Request *request)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Cancel)(request);
    struct request *r = request_find(*request);
    if (r && r->kind == RECEIVE_REQUEST)
        r->cancelled = true;
    else
        note("MPI_Cancel of a send: its message is in the trace even if the cancel succeeded");
    call_enter(t, CALL_Cancel, 0);
    int result = NEXT(Cancel)(request);
    call_return(t);
    call_leave(t, CALL_Cancel, 0);
    return result;
}

#ifdef OPEN_MPI

#define ALIAS(name, of) EXPORTED __typeof__(of) name __attribute__((alias(#of)));
#define ALIASES(name, NAME, of)                                                               \
    ALIAS(mpi_##name, of)                                                                     \
    ALIAS(mpi_##name##_, of)                                                                  \
    ALIAS(mpi_##name##__, of)                                                                 \
    ALIAS(MPI_##NAME, of)                                                                     \
    ALIAS(pmpi_##name, of)                                                                    \
    ALIAS(pmpi_##name##_, of)                                                                 \
    ALIAS(pmpi_##name##__, of)                                                                \
    ALIAS(PMPI_##NAME, of)

/* ENTER and LEAVE are what is recorded if there are no requests. */
#define FORTRAN(name, NAME, PARAMETERS, ARGUMENTS, ENTER, LEAVE)                              \
    EXPORTED void ompi_##name##_f PARAMETERS;                                                 \
    ALIASES(name, NAME, ompi_##name##_f)                                                      \
    void ompi_##name##_f PARAMETERS                                                           \
    {                                                                                         \
        static _Atomic(function *) known;                                                     \
        function *f = atomic_load_explicit(&known, memory_order_relaxed);                     \
        if (UNLIKELY(!f))                                                                     \
            atomic_store(&known, f = next_of_fortran("ompi_" #name "_f"));                    \
        __typeof__(&ompi_##name##_f) next = (__typeof__(&ompi_##name##_f))f;                  \
        struct thread *t = *n == 0 ? call_begin() : NULL;                                     \
        if (t)                                                                                \
            ENTER;                                                                            \
        next ARGUMENTS;                                                                       \
        if (t) {                                                                              \
            call_return(t);                                                                   \
            LEAVE;                                                                            \
        }                                                                                     \
    }
#define FORTRAN_WAIT(name, NAME, CALL, PARAMETERS, ARGUMENTS)                                 \
    FORTRAN(name, NAME, PARAMETERS, ARGUMENTS, call_enter(t, CALL, 0), call_leave(t, CALL, 0))
#define FORTRAN_TEST(name, NAME, CALL, PARAMETERS, ARGUMENTS, done)                           \
    FORTRAN(name, NAME, PARAMETERS, ARGUMENTS, poll_enter(t, CALL, 0), poll_leave(t, CALL, done))

/* clang-format off */
FORTRAN_WAIT(waitall, WAITALL, CALL_Waitall,
             (MPI_Fint *n, MPI_Fint *requests, MPI_Fint *statuses, MPI_Fint *error),
             (n, requests, statuses, error))
FORTRAN_WAIT(waitany, WAITANY, CALL_Waitany,
             (MPI_Fint *n, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *status, MPI_Fint *error),
             (n, requests, index, status, error))
FORTRAN_WAIT(waitsome, WAITSOME, CALL_Waitsome,
             (MPI_Fint *n, MPI_Fint *requests, MPI_Fint *count, MPI_Fint *indices,
              MPI_Fint *statuses, MPI_Fint *error),
             (n, requests, count, indices, statuses, error))
FORTRAN_TEST(testall, TESTALL, CALL_Testall,
             (MPI_Fint *n, MPI_Fint *requests, MPI_Fint *flag, MPI_Fint *statuses, MPI_Fint *error),
             (n, requests, flag, statuses, error), true)
FORTRAN_TEST(testany, TESTANY, CALL_Testany,
             (MPI_Fint *n, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *flag, MPI_Fint *status,
              MPI_Fint *error),
             (n, requests, index, flag, status, error), false)
FORTRAN_TEST(testsome, TESTSOME, CALL_Testsome,
             (MPI_Fint *n, MPI_Fint *requests, MPI_Fint *count, MPI_Fint *indices,
              MPI_Fint *statuses, MPI_Fint *error),
             (n, requests, count, indices, statuses, error), false)
/* clang-format on */
#endif
