/* Records of messages, at t->time: see record.h. */
#ifndef POPMODEL_MESSAGES_H
#define POPMODEL_MESSAGES_H

#include "call.h"
#include "communicators.h"
#include "requests.h"

/* Messages to and from MPI_PROC_NULL are none, and those of communicators about which nothing is
 * known cannot be matched. */
static inline bool is_message(const struct communicator *c, int partner)
{
    return LIKELY(partner != MPI_PROC_NULL && c->id != 0);
}

/* What is sent to a rank that does not exist is an error, which a program may go on after. */
static inline void put_send(struct thread *t, const struct communicator *c, int to, int tag,
                            int64_t bytes)
{
    if (is_message(c, to) && LIKELY(has_partner(c, to)))
        put(t, t->time, SEND, 0, c->id, message_end(world_rank(c, to), tag), bytes);
}

/* Number of the receive; 0 if there is none. */
static inline int64_t put_post(struct thread *t, const struct communicator *c, int from,
                               bool blocking)
{
    if (!is_message(c, from))
        return 0;
    int64_t number = receive_number();
    put(t, t->time, POST, 0, c->id, number, blocking);
    return number;
}

static inline int64_t bytes_received(const MPI_Status *status)
{
    int bytes = 0;
    MPI_Count many = 0;
    if (LIKELY(pmpi.Get_count(status, handles.byte, &bytes) == MPI_SUCCESS &&
               bytes != MPI_UNDEFINED))
        return bytes;
    return pmpi.Get_elements_x(status, handles.byte, &many) == MPI_SUCCESS && many > 0 ? many : 0;
}

static inline void put_receive(struct thread *t, const struct communicator *c,
                               const MPI_Status *status, int64_t number)
{
    if (number == 0 || status->MPI_SOURCE == MPI_PROC_NULL)
        return;
    int64_t end = message_end(world_rank(c, status->MPI_SOURCE), status->MPI_TAG);
    put(t, t->time, RECEIVE, 0, c->id, end, bytes_received(status));
    put(t, t->time, RECEIVED, 0, 0, number, 0);
}

static inline void put_told_receive(struct thread *t, const struct request *r)
{
    int64_t end = message_end(world_rank(r->communicator, r->partner), r->tag);
    put(t, t->time, RECEIVE, 0, r->communicator->id, end, r->bytes);
    put(t, t->time, RECEIVED, 0, 0, r->number, 0);
}

/* What a collective operation between neighbours sends and posts; the number of its first receive. */
static inline int64_t put_exchange(struct thread *t, const struct communicator *c,
                                   const struct exchange *x, bool blocking)
{
    int64_t first = receive_numbers(x->in);
    for (int i = 0; i < x->out; i++) {
        t->time = room_at(t, 4, t->time);
        put(t, t->time, SEND, 0, c->id, x->of[i].end, x->of[i].bytes);
    }
    for (int i = 0; i < x->in; i++) {
        t->time = room_at(t, 4, t->time);
        put(t, t->time, POST, 0, c->id, first + i, blocking);
    }
    return first;
}

static inline void put_exchanged(struct thread *t, const struct communicator *c,
                                 const struct exchange *x, int64_t first)
{
    for (int i = 0; i < x->in; i++) {
        t->time = room_at(t, 4, t->time);
        put(t, t->time, RECEIVE, 0, c->id, x->of[x->out + i].end, x->of[x->out + i].bytes);
        put(t, t->time, RECEIVED, 0, 0, first + i, 0);
    }
    t->time = room_at(t, 8, t->time);
}

/* Whether a receive has taken a message: one that was longer than the buffer was taken, too. */
static inline bool has_received(int result)
{
    int class = MPI_SUCCESS;
    if (LIKELY(result == MPI_SUCCESS))
        return true;
    return pmpi.Error_class(result, &class) == MPI_SUCCESS && class == MPI_ERR_TRUNCATE;
}

#endif
