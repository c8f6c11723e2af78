/* Starting persistent messages: each start is a message of its own. */
#define _GNU_SOURCE
#include "messages.h"

static void started(struct thread *t, struct request *r)
{
    r->active = true;
    r->cancelled = false;
    if (r->kind == SEND_REQUEST)
        put_send(t, r->communicator, r->partner, r->tag, r->bytes);
    else if (r->kind == EXCHANGE_REQUEST)
        r->number = put_exchange(t, r->communicator, r->exchange, false);
    else
        r->number = put_post(t, r->communicator, r->partner, false);
}

WRAPPER(MPI_Start)(MPI_Request *request)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Start)(request);
    struct request *r = request_find(*request);
    call_enter(t, CALL_Start, r ? r->communicator->id : 0);
    if (r)
        started(t, r);
    int result = NEXT(Start)(request);
    call_return(t);
    call_leave(t, CALL_Start, 0);
    return result;
}

WRAPPER(MPI_Startall)(int n, MPI_Request requests[])
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Startall)(n, requests);
    call_enter(t, CALL_Startall, 0);
    for (int i = 0; i < n; i++) {
        struct request *r = request_find(requests[i]);
        t->time = room_at(t, 4, t->time);
        if (r)
            started(t, r);
    }
    int result = NEXT(Startall)(n, requests);
    call_return(t);
    call_leave(t, CALL_Startall, 0);
    return result;
}
