/* Requests that are worth remembering until they complete.
 *
 * Receives, nonblocking collective operations, everything persistent, matched messages. Not sends:
 * nothing is recorded when they complete, and they are half of all requests.
 *
 * A handle can be used again as soon as MPI has freed it, which may be before the thread that
 * waited for it has come back here. So an entry is taken out of the table before MPI is asked to
 * complete its request, and put back if it is not complete. And some libraries give one handle to
 * all requests that are complete at once: several entries may have one, and each is taken once.
 */
#ifndef POPMODEL_REQUESTS_H
#define POPMODEL_REQUESTS_H

#include <mpi.h>

#include "communicators.h"
#include "next.h"
#include "state.h"

enum request_kind {
    SEND_REQUEST,
    RECEIVE_REQUEST,
    COLLECTIVE_REQUEST,
    EXCHANGE_REQUEST,
    DUPLICATE_REQUEST,
    MESSAGE
};

/* The messages of a collective operation between neighbours, as records have them. */
struct exchange {
    int out, in;
    struct transfer {
        int64_t end, bytes;
    } of[]; /* those sent, then those received */
};

struct request {
    uint64_t key;
    struct request *chain;
    enum request_kind kind;
    bool persistent;
    bool active;    /* started and not complete; others than persistent ones are from the start */
    bool cancelled; /* asked for, which may come too late */
    struct communicator *communicator;
    int64_t number; /* of the receive, the first receive, or the collective operation */
    bool told; /* by the arguments below, whatever the status says (MPI_Isendrecv) */
    /* Of a persistent send or receive: */
    int partner, tag; /* rank in the communicator */
    int64_t bytes;
    struct exchange *exchange; /* of an EXCHANGE_REQUEST, which frees it */
    MPI_Comm duplicate; /* what MPI_Comm_idup will have made */
};

extern _Atomic long requests_known;

/* Remembers; takes a share of the communicator. NULL if there is no memory (noted). */
struct request *request_add(MPI_Request, enum request_kind, struct communicator *);
struct request *message_add(MPI_Message, struct communicator *);

static inline bool request_any(void)
{
    return atomic_load_explicit(&requests_known, memory_order_relaxed) != 0;
}

/* The newest entry of a handle, NULL if there is none. */
struct request *request_find(MPI_Request);

/* The same, and takes it: it is the caller's until it is put back or dropped. */
struct request *request_take(MPI_Request);
struct request *message_take(MPI_Message);
void request_put_back(struct request *);
void request_drop(struct request *);

/* Numbers of receives, and of nonblocking collective operations, in this process. */
int64_t receive_number(void);
int64_t receive_numbers(int many); /* the first of them */
int64_t collective_number(void);

#endif
