/* Requests that are worth remembering until they complete.
 *
 * Receives, nonblocking collective operations, everything persistent, matched messages. Not sends:
 * nothing is recorded when they complete, and they are half of all requests.
 *
 * A handle can be used again as soon as MPI has freed it, which may be before the thread that
 * waited for it has come back here; and some libraries give one handle to all requests that are
 * complete at once. So several entries may have one handle: the newest is found first, and each is
 * removed by itself, not by its handle.
 */
#ifndef POPMODEL_REQUESTS_H
#define POPMODEL_REQUESTS_H

#include <mpi.h>

#include "communicators.h"
#include "next.h"
#include "state.h"

enum request_kind { SEND_REQUEST, RECEIVE_REQUEST, COLLECTIVE_REQUEST, DUPLICATE_REQUEST, MESSAGE };

struct request {
    uint64_t key;
    struct request *chain;
    enum request_kind kind;
    bool persistent;
    bool active;    /* started and not complete; others than persistent ones are from the start */
    bool cancelled; /* asked for, which may come too late */
    struct communicator *communicator;
    int64_t number; /* of the receive or the collective operation */
    bool told; /* by the arguments below, whatever the status says (MPI_Isendrecv) */
    /* Of a persistent send or receive: */
    int partner, tag; /* rank in the communicator */
    int64_t bytes;
    MPI_Comm duplicate; /* what MPI_Comm_idup will have made */
};

extern _Atomic long requests_known;

/* Remembers; takes a share of the communicator. NULL if there is no memory (noted). */
struct request *request_add(MPI_Request, enum request_kind, struct communicator *);
struct request *message_add(MPI_Message, struct communicator *);

/* The entry of a handle, NULL if there is none. */
struct request *request_lookup(MPI_Request);
struct request *message_lookup(MPI_Message);

void request_remove(struct request *);

static inline struct request *request_find(MPI_Request request)
{
    if (atomic_load_explicit(&requests_known, memory_order_relaxed) == 0)
        return NULL;
    return request_lookup(request);
}

static inline struct request *message_find(MPI_Message message)
{
    if (atomic_load_explicit(&requests_known, memory_order_relaxed) == 0)
        return NULL;
    return message_lookup(message);
}

/* Numbers of receives, and of nonblocking collective operations, in this process. */
int64_t receive_number(void);
int64_t collective_number(void);

#endif
