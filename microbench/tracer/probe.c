/* Looking for messages, and matching them. A matched message is taken out of the queue at once, so
 * its receive is posted here, and MPI_Mrecv only completes it. */
#define _GNU_SOURCE
#include "messages.h"

static void match(struct thread *t, struct communicator *c, int from, MPI_Message *message)
{
    int64_t number = put_post(t, c, from, false);
    struct request *r = number ? message_add(*message, c) : NULL;
    if (r)
        r->number = number;
}

WRAPPER(MPI_Probe)(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Probe)(from, tag, comm, status);
    call_enter(t, CALL_Probe, communicator_of(t, comm)->id);
    int result = NEXT(Probe)(from, tag, comm, status);
    call_return(t);
    call_leave(t, CALL_Probe, 0);
    return result;
}

WRAPPER(MPI_Iprobe)(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Iprobe)(from, tag, comm, flag, status);
    poll_enter(t, CALL_Iprobe, communicator_of(t, comm)->id);
    int result = NEXT(Iprobe)(from, tag, comm, flag, status);
    call_return(t);
    poll_leave(t, CALL_Iprobe, result == MPI_SUCCESS && *flag);
    return result;
}

WRAPPER(MPI_Mprobe)(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Mprobe)(from, tag, comm, message, status);
    struct communicator *c = communicator_of(t, comm);
    call_enter(t, CALL_Mprobe, c->id);
    int result = NEXT(Mprobe)(from, tag, comm, message, status);
    call_return(t);
    if (result == MPI_SUCCESS)
        match(t, c, from, message);
    call_leave(t, CALL_Mprobe, 0);
    return result;
}

WRAPPER(MPI_Improbe)(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                     MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Improbe)(from, tag, comm, flag, message, status);
    struct communicator *c = communicator_of(t, comm);
    poll_enter(t, CALL_Improbe, c->id);
    int result = NEXT(Improbe)(from, tag, comm, flag, message, status);
    call_return(t);
    bool found = result == MPI_SUCCESS && *flag;
    if (found)
        match(t, c, from, message);
    poll_leave(t, CALL_Improbe, found);
    return result;
}
