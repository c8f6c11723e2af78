/* Messages: sends of all modes, receives, both at once. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "messages.h"
#include "meta.h"

#define SEND_CALL(name)                                                                           \
    WRAPPER(MPI(name))(const void *buffer, COUNT count, MPI_Datatype type, int to, int tag,        \
                      MPI_Comm comm)                                                              \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(buffer, count, type, to, tag, comm);                                \
        const struct communicator *c = communicator_of(t, comm);                                  \
        call_enter(t, CALL_##name, c->id);                                                        \
        put_send(t, c, to, tag, bytes_of(count, type));                                           \
        int result = NEXT(name)(buffer, count, type, to, tag, comm);                              \
        call_return(t);                                                                           \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }

/* That a send has completed is not recorded, so its request is not remembered. */
#define ISEND_CALL(name)                                                                          \
    WRAPPER(MPI(name))(const void *buffer, COUNT count, MPI_Datatype type, int to, int tag,        \
                      MPI_Comm comm, MPI_Request *request)                                        \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(buffer, count, type, to, tag, comm, request);                       \
        const struct communicator *c = communicator_of(t, comm);                                  \
        call_enter(t, CALL_##name, c->id);                                                        \
        put_send(t, c, to, tag, bytes_of(count, type));                                           \
        int result = NEXT(name)(buffer, count, type, to, tag, comm, request);                     \
        call_return(t);                                                                           \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }

#define SEND_INIT_CALL(name)                                                                      \
    WRAPPER(MPI(name))(const void *buffer, COUNT count, MPI_Datatype type, int to, int tag,        \
                      MPI_Comm comm, MPI_Request *request)                                        \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(buffer, count, type, to, tag, comm, request);                       \
        struct communicator *c = communicator_of(t, comm);                                        \
        call_enter(t, CALL_##name, c->id);                                                        \
        int result = NEXT(name)(buffer, count, type, to, tag, comm, request);                     \
        if (result == MPI_SUCCESS)                                                                \
            remember_persistent(request, SEND_REQUEST, c, to, tag, bytes_of(count, type));        \
        call_return(t);                                                                           \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }

static void remember_receive(MPI_Request *request, struct communicator *c, int64_t number)
{
    struct request *r = number ? request_add(*request, RECEIVE_REQUEST, c) : NULL;
    if (r)
        r->number = number;
}

static void remember_persistent(MPI_Request *request, enum request_kind kind,
                                struct communicator *c, int partner, int tag, int64_t bytes)
{
    if (!is_message(c, partner))
        return;
    struct request *r = request_add(*request, kind, c);
    if (!r)
        return;
    r->persistent = true;
    r->active = false;
    r->partner = partner;
    r->tag = tag;
    r->bytes = bytes;
}

SEND_CALL(Send)
SEND_CALL(Bsend)
SEND_CALL(Ssend)
SEND_CALL(Rsend)
ISEND_CALL(Isend)
ISEND_CALL(Ibsend)
ISEND_CALL(Issend)
ISEND_CALL(Irsend)
SEND_INIT_CALL(Send_init)
SEND_INIT_CALL(Bsend_init)
SEND_INIT_CALL(Ssend_init)
SEND_INIT_CALL(Rsend_init)

WRAPPER(MPI(Recv_init))(void *buffer, COUNT count, MPI_Datatype type, int from, int tag,
                        MPI_Comm comm, MPI_Request *request)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Recv_init)(buffer, count, type, from, tag, comm, request);
    struct communicator *c = communicator_of(t, comm);
    call_enter(t, CALL_Recv_init, c->id);
    int result = NEXT(Recv_init)(buffer, count, type, from, tag, comm, request);
    if (result == MPI_SUCCESS)
        remember_persistent(request, RECEIVE_REQUEST, c, from, tag, 0);
    call_return(t);
    call_leave(t, CALL_Recv_init, 0);
    return result;
}

WRAPPER(MPI(Recv))(void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                   MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Recv)(buffer, count, type, from, tag, comm, status);
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const struct communicator *c = communicator_of(t, comm);
    call_enter(t, CALL_Recv, c->id);
    int64_t number = put_post(t, c, from, true);
    int result = NEXT(Recv)(buffer, count, type, from, tag, comm, status);
    call_return(t);
    if (has_received(result))
        put_receive(t, c, status, number);
    call_leave(t, CALL_Recv, 0);
    return result;
}

WRAPPER(MPI(Irecv))(void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                    MPI_Request *request)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Irecv)(buffer, count, type, from, tag, comm, request);
    struct communicator *c = communicator_of(t, comm);
    call_enter(t, CALL_Irecv, c->id);
    int64_t number = put_post(t, c, from, false);
    int result = NEXT(Irecv)(buffer, count, type, from, tag, comm, request);
    if (result == MPI_SUCCESS)
        remember_receive(request, c, number);
    call_return(t);
    call_leave(t, CALL_Irecv, 0);
    return result;
}

WRAPPER(MPI(Sendrecv))(const void *out, COUNT out_count, MPI_Datatype out_type, int to, int out_tag,
                       void *in, COUNT in_count, MPI_Datatype in_type, int from, int in_tag,
                       MPI_Comm comm, MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Sendrecv)(out, out_count, out_type, to, out_tag, in, in_count, in_type, from,
                              in_tag, comm, status);
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const struct communicator *c = communicator_of(t, comm);
    call_enter(t, CALL_Sendrecv, c->id);
    put_send(t, c, to, out_tag, bytes_of(out_count, out_type));
    int64_t number = put_post(t, c, from, true);
    int result = NEXT(Sendrecv)(out, out_count, out_type, to, out_tag, in, in_count, in_type, from,
                                in_tag, comm, status);
    call_return(t);
    if (has_received(result))
        put_receive(t, c, status, number);
    call_leave(t, CALL_Sendrecv, 0);
    return result;
}

WRAPPER(MPI(Sendrecv_replace))(void *buffer, COUNT count, MPI_Datatype type, int to, int out_tag,
                               int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Sendrecv_replace)(buffer, count, type, to, out_tag, from, in_tag, comm, status);
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const struct communicator *c = communicator_of(t, comm);
    call_enter(t, CALL_Sendrecv_replace, c->id);
    put_send(t, c, to, out_tag, bytes_of(count, type));
    int64_t number = put_post(t, c, from, true);
    int result =
        NEXT(Sendrecv_replace)(buffer, count, type, to, out_tag, from, in_tag, comm, status);
    call_return(t);
    if (has_received(result))
        put_receive(t, c, status, number);
    call_leave(t, CALL_Sendrecv_replace, 0);
    return result;
}

/* One request for the send and the receive: it completes with the status of the receive. Not so in
 * MPICH (5.0, and those made from it), where the status is one of before: there the arguments have
 * to tell, with the size of the buffer as that of the message. */
static void remember_both(MPI_Request *request, struct communicator *c, int64_t number, int from,
                          int tag, int64_t bytes)
{
#ifdef OPEN_MPI
    const bool is_told_by_status = true;
#else
    const bool is_told_by_status = false;
#endif
    bool is_wild = from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG;
    if (is_wild && !is_told_by_status) {
        note("MPI_Isendrecv with MPI_ANY_SOURCE or MPI_ANY_TAG: its receive is unknown");
        return;
    }
    struct request *r = number ? request_add(*request, RECEIVE_REQUEST, c) : NULL;
    if (!r)
        return;
    r->number = number;
    r->told = !is_told_by_status;
    r->partner = from;
    r->tag = tag;
    r->bytes = bytes;
}

WRAPPER(MPI(Isendrecv))(const void *out, COUNT out_count, MPI_Datatype out_type, int to,
                        int out_tag, void *in, COUNT in_count, MPI_Datatype in_type, int from,
                        int in_tag, MPI_Comm comm, MPI_Request *request)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Isendrecv)(out, out_count, out_type, to, out_tag, in, in_count, in_type, from,
                               in_tag, comm, request);
    struct communicator *c = communicator_of(t, comm);
    call_enter(t, CALL_Isendrecv, c->id);
    put_send(t, c, to, out_tag, bytes_of(out_count, out_type));
    int64_t number = put_post(t, c, from, false);
    int result = NEXT(Isendrecv)(out, out_count, out_type, to, out_tag, in, in_count, in_type, from,
                                 in_tag, comm, request);
    if (result == MPI_SUCCESS)
        remember_both(request, c, number, from, in_tag, bytes_of(in_count, in_type));
    call_return(t);
    call_leave(t, CALL_Isendrecv, 0);
    return result;
}

WRAPPER(MPI(Isendrecv_replace))(void *buffer, COUNT count, MPI_Datatype type, int to, int out_tag,
                                int from, int in_tag, MPI_Comm comm, MPI_Request *request)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Isendrecv_replace)(buffer, count, type, to, out_tag, from, in_tag, comm,
                                       request);
    struct communicator *c = communicator_of(t, comm);
    call_enter(t, CALL_Isendrecv_replace, c->id);
    put_send(t, c, to, out_tag, bytes_of(count, type));
    int64_t number = put_post(t, c, from, false);
    int result = NEXT(Isendrecv_replace)(buffer, count, type, to, out_tag, from, in_tag, comm,
                                         request);
    if (result == MPI_SUCCESS)
        remember_both(request, c, number, from, in_tag, bytes_of(count, type));
    call_return(t);
    call_leave(t, CALL_Isendrecv_replace, 0);
    return result;
}

/* A matched message: its receive was numbered when it was matched (probe.c). */
static int64_t matched(MPI_Message message, struct communicator **c)
{
    struct request *r = message_take(message);
    if (!r)
        return 0;
    int64_t number = r->number;
    *c = r->communicator;
    shared_add(&r->communicator->users, 1);
    request_drop(r);
    return number;
}

WRAPPER(MPI(Mrecv))(void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message,
                    MPI_Status *status)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Mrecv)(buffer, count, type, message, status);
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    struct communicator *c = NULL;
    int64_t number = matched(*message, &c);
    call_enter(t, CALL_Mrecv, c ? c->id : 0);
    int result = NEXT(Mrecv)(buffer, count, type, message, status);
    call_return(t);
    if (number && has_received(result))
        put_receive(t, c, status, number);
    call_leave(t, CALL_Mrecv, 0);
    if (c)
        communicator_release(c);
    return result;
}

WRAPPER(MPI(Imrecv))(void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message,
                     MPI_Request *request)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Imrecv)(buffer, count, type, message, request);
    struct communicator *c = NULL;
    int64_t number = matched(*message, &c);
    call_enter(t, CALL_Imrecv, c ? c->id : 0);
    int result = NEXT(Imrecv)(buffer, count, type, message, request);
    if (result == MPI_SUCCESS)
        remember_receive(request, c, number);
    if (result == MPI_SUCCESS && number) /* the probe has posted it; here is who goes on with it */
        put(t, t->time, POST, 0, c->id, number, 0);
    call_return(t);
    call_leave(t, CALL_Imrecv, 0);
    if (c)
        communicator_release(c);
    return result;
}
