/* Calls of which only the time is recorded: one-sided communication, files, persistent collective
 * operations, partitioned messages, buffers. And collective operations between neighbours, which
 * are recorded as the messages that they are.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#include "messages.h"
#include "meta.h"

#ifndef LIST
#define LIST(...) __VA_ARGS__
#endif

#define TIMED_CALL(whole, name, on, parameters, arguments)                                        \
    NEWER_WRAPPER(whole, parameters)                                                              \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(arguments);                                                         \
        call_enter(t, CALL_##name, on);                                                           \
        int result = NEXT(name)(arguments);                                                       \
        call_return(t);                                                                           \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }

#define TIMED(name, parameters, arguments)                                                        \
    TIMED_CALL(MPI(name), name, 0, LIST(parameters), LIST(arguments))
#define TIMED_ON_COMM(name, parameters, arguments)                                                \
    TIMED_CALL(MPI(name), name, communicator_of(t, comm)->id, LIST(parameters), LIST(arguments))

/* Buffers of MPI_Bsend. Detaching one waits until its messages are gone. */
TIMED(Buffer_attach, LIST(void *buffer, COUNT size), LIST(buffer, size))
TIMED(Buffer_detach, LIST(void *buffer, COUNT *size), LIST(buffer, size))

/* Collective operations between neighbours: what goes out, or comes in. */
struct side {
    COUNT count; /* for each neighbour, unless there are `counts` */
    const COUNT *counts;
    MPI_Datatype type; /* unless there are `types` */
    const MPI_Datatype *types;
};

static int exchange_add(struct transfer *parts, const struct communicator *c,
                        const struct neighbour *neighbours, int n, const struct side *side)
{
    int many = 0;
    for (int i = 0; i < n; i++) {
        int rank = neighbours[i].rank;
        if (!is_message(c, rank) || !has_partner(c, rank))
            continue;
        int64_t bytes = bytes_of(side->counts ? side->counts[i] : side->count,
                                 side->types ? side->types[i] : side->type);
        parts[many++] = (struct transfer){message_end(world_rank(c, rank), neighbours[i].tag), bytes};
    }
    return many;
}

/* NULL if there is no memory (noted). */
static struct exchange *exchange_of(struct communicator *c, MPI_Comm comm, struct side out,
                                    struct side in)
{
    const struct neighbours *n = neighbours_of(c, comm);
    if (!n)
        return NULL;
    struct exchange *x = malloc(sizeof *x + sizeof x->of[0] * (size_t)(n->out + n->in));
    if (!x) {
        note("not enough memory for the messages between neighbours: they are not recorded");
        return NULL;
    }
    x->out = exchange_add(x->of, c, n->of, n->out, &out);
    x->in = exchange_add(x->of + x->out, c, n->of + n->out, n->in, &in);
    return x;
}

/* Takes the exchange. */
static struct request *remember_exchange(MPI_Request request, struct communicator *c,
                                         struct exchange *x, int64_t number)
{
    struct request *r = x ? request_add(request, EXCHANGE_REQUEST, c) : NULL;
    if (!r) {
        free(x);
        return NULL;
    }
    r->exchange = x;
    r->number = number;
    return r;
}

#define NEIGHBOUR(name, iname, pname, out, in, parameters, arguments)                             \
    NEWER_WRAPPER(MPI(name), parameters)                                                          \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(arguments);                                                         \
        struct communicator *c = communicator_of(t, comm);                                        \
        call_enter(t, CALL_##name, c->id);                                                        \
        struct exchange *x = exchange_of(c, comm, out, in);                                       \
        int64_t number = x ? put_exchange(t, c, x, true) : 0;                                     \
        int result = NEXT(name)(arguments);                                                       \
        call_return(t);                                                                           \
        if (x && result == MPI_SUCCESS)                                                           \
            put_exchanged(t, c, x, number);                                                       \
        free(x);                                                                                  \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }                                                                                             \
                                                                                                  \
    NEWER_WRAPPER(MPI(iname), parameters, MPI_Request *request)                                   \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(iname)(arguments, request);                                               \
        struct communicator *c = communicator_of(t, comm);                                        \
        call_enter(t, CALL_##iname, c->id);                                                       \
        struct exchange *x = exchange_of(c, comm, out, in);                                       \
        int64_t number = x ? put_exchange(t, c, x, false) : 0;                                    \
        int result = NEXT(iname)(arguments, request);                                             \
        if (result == MPI_SUCCESS)                                                                \
            remember_exchange(*request, c, x, number);                                            \
        else                                                                                      \
            free(x);                                                                              \
        call_return(t);                                                                           \
        call_leave(t, CALL_##iname, 0);                                                           \
        return result;                                                                            \
    }                                                                                             \
                                                                                                  \
    NEWER_WRAPPER(MPI(pname), parameters, MPI_Info info, MPI_Request *request)                    \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(pname)(arguments, info, request);                                         \
        struct communicator *c = communicator_of(t, comm);                                        \
        call_enter(t, CALL_##pname, c->id);                                                       \
        int result = NEXT(pname)(arguments, info, request);                                       \
        if (result == MPI_SUCCESS) {                                                              \
            struct request *r =                                                                   \
                remember_exchange(*request, c, exchange_of(c, comm, out, in), 0);                 \
            if (r) {                                                                              \
                r->persistent = true;                                                             \
                r->active = false;                                                                \
            }                                                                                     \
        }                                                                                         \
        call_return(t);                                                                           \
        call_leave(t, CALL_##pname, 0);                                                           \
        return result;                                                                            \
    }

#define ONE(way) ((struct side){.count = way##_count, .type = way##_type})
#define MANY(way) ((struct side){.counts = way##_counts, .type = way##_type})
#define TYPED(way) ((struct side){.counts = way##_counts, .types = way##_types})

#define EQUAL                                                                                     \
    LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in, COUNT in_count,       \
         MPI_Datatype in_type, MPI_Comm comm)
#define EQUAL_ARGUMENTS LIST(out, out_count, out_type, in, in_count, in_type, comm)
#define GATHERV                                                                                   \
    LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in,                       \
         const COUNT in_counts[], const DISPLACEMENT in_places[], MPI_Datatype in_type,           \
         MPI_Comm comm)
#define GATHERV_ARGUMENTS LIST(out, out_count, out_type, in, in_counts, in_places, in_type, comm)
#define ALLTOALLV                                                                                 \
    LIST(const void *out, const COUNT out_counts[], const DISPLACEMENT out_places[],              \
         MPI_Datatype out_type, void *in, const COUNT in_counts[],                                \
         const DISPLACEMENT in_places[], MPI_Datatype in_type, MPI_Comm comm)
#define ALLTOALLV_ARGUMENTS                                                                       \
    LIST(out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, comm)
/* Between neighbours the places are of type MPI_Aint in both forms, in others as in alltoallv. */
#define ALLTOALLW(places)                                                                         \
    LIST(const void *out, const COUNT out_counts[], const places out_places[],                    \
         const MPI_Datatype out_types[], void *in, const COUNT in_counts[],                       \
         const places in_places[], const MPI_Datatype in_types[], MPI_Comm comm)
#define ALLTOALLW_ARGUMENTS                                                                       \
    LIST(out, out_counts, out_places, out_types, in, in_counts, in_places, in_types, comm)

NEIGHBOUR(Neighbor_allgather, Ineighbor_allgather, Neighbor_allgather_init, ONE(out), ONE(in),
          LIST(EQUAL), LIST(EQUAL_ARGUMENTS))
NEIGHBOUR(Neighbor_allgatherv, Ineighbor_allgatherv, Neighbor_allgatherv_init, ONE(out), MANY(in),
          LIST(GATHERV), LIST(GATHERV_ARGUMENTS))
NEIGHBOUR(Neighbor_alltoall, Ineighbor_alltoall, Neighbor_alltoall_init, ONE(out), ONE(in),
          LIST(EQUAL), LIST(EQUAL_ARGUMENTS))
NEIGHBOUR(Neighbor_alltoallv, Ineighbor_alltoallv, Neighbor_alltoallv_init, MANY(out), MANY(in),
          LIST(ALLTOALLV), LIST(ALLTOALLV_ARGUMENTS))
NEIGHBOUR(Neighbor_alltoallw, Ineighbor_alltoallw, Neighbor_alltoallw_init, TYPED(out), TYPED(in),
          LIST(ALLTOALLW(MPI_Aint)), LIST(ALLTOALLW_ARGUMENTS))

/* Persistent collective operations: made here, started by MPI_Start, which does not say what. */
static uint32_t persistent(struct thread *t, MPI_Comm comm)
{
    note("persistent collectives: timed (MPI_Start, MPI_Wait), but without their sizes");
    return communicator_of(t, comm)->id;
}

#define PERSISTENT(name, parameters, arguments)                                                   \
    TIMED_CALL(MPI(name), name, persistent(t, comm),                                              \
               LIST(parameters, MPI_Info info, MPI_Request * request),                            \
               LIST(arguments, info, request))

#define REDUCTION_LIST                                                                            \
    LIST(const void *out, void *in, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
#define REDUCTION_ARGUMENTS LIST(out, in, count, type, op, comm)

#ifndef LARGE
PERSISTENT(Barrier_init, LIST(MPI_Comm comm), LIST(comm))
#endif
PERSISTENT(Bcast_init,
           LIST(void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
           LIST(buffer, count, type, root, comm))
PERSISTENT(Reduce_init,
           LIST(const void *out, void *in, COUNT count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm),
           LIST(out, in, count, type, op, root, comm))
PERSISTENT(Allreduce_init, REDUCTION_LIST, REDUCTION_ARGUMENTS)
PERSISTENT(Scan_init, REDUCTION_LIST, REDUCTION_ARGUMENTS)
PERSISTENT(Exscan_init, REDUCTION_LIST, REDUCTION_ARGUMENTS)
PERSISTENT(Reduce_scatter_block_init, REDUCTION_LIST, REDUCTION_ARGUMENTS)
PERSISTENT(Reduce_scatter_init,
           LIST(const void *out, void *in, const COUNT counts[], MPI_Datatype type, MPI_Op op,
                MPI_Comm comm),
           LIST(out, in, counts, type, op, comm))
PERSISTENT(Gather_init,
           LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in, COUNT in_count,
                MPI_Datatype in_type, int root, MPI_Comm comm),
           LIST(out, out_count, out_type, in, in_count, in_type, root, comm))
PERSISTENT(Gatherv_init,
           LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in,
                const COUNT in_counts[], const DISPLACEMENT in_places[], MPI_Datatype in_type,
                int root, MPI_Comm comm),
           LIST(out, out_count, out_type, in, in_counts, in_places, in_type, root, comm))
PERSISTENT(Scatter_init,
           LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in, COUNT in_count,
                MPI_Datatype in_type, int root, MPI_Comm comm),
           LIST(out, out_count, out_type, in, in_count, in_type, root, comm))
PERSISTENT(Scatterv_init,
           LIST(const void *out, const COUNT out_counts[], const DISPLACEMENT out_places[],
                MPI_Datatype out_type, void *in, COUNT in_count, MPI_Datatype in_type, int root,
                MPI_Comm comm),
           LIST(out, out_counts, out_places, out_type, in, in_count, in_type, root, comm))
PERSISTENT(Allgather_init, EQUAL, EQUAL_ARGUMENTS)
PERSISTENT(Allgatherv_init, GATHERV, GATHERV_ARGUMENTS)
PERSISTENT(Alltoall_init, EQUAL, EQUAL_ARGUMENTS)
PERSISTENT(Alltoallv_init, ALLTOALLV, ALLTOALLV_ARGUMENTS)
PERSISTENT(Alltoallw_init, ALLTOALLW(DISPLACEMENT), ALLTOALLW_ARGUMENTS)

/* Partitioned messages; they have one form only, with MPI_Count for the partitions. */
#ifndef LARGE
static uint32_t partitioned(struct thread *t, MPI_Comm comm)
{
    note("partitioned messages: timed, but not in the trace as messages");
    return communicator_of(t, comm)->id;
}

TIMED_CALL(MPI_Psend_init, Psend_init, partitioned(t, comm),
           LIST(const void *buffer, int partitions, MPI_Count count, MPI_Datatype type, int to,
                int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request),
           LIST(buffer, partitions, count, type, to, tag, comm, info, request))
TIMED_CALL(MPI_Precv_init, Precv_init, partitioned(t, comm),
           LIST(void *buffer, int partitions, MPI_Count count, MPI_Datatype type, int from,
                int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request),
           LIST(buffer, partitions, count, type, from, tag, comm, info, request))
TIMED(Pready, LIST(int partition, MPI_Request request), LIST(partition, request))
TIMED(Pready_range, LIST(int first, int last, MPI_Request request), LIST(first, last, request))
/* The list is not const in MPI 4.0, nor in Open MPI 5; it is since MPI 4.1. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
typedef __typeof__(_Generic(&MPI_Pready_list,
                            int (*)(int, int *, MPI_Request): (int *)NULL,
                            default: (const int *)NULL)) partition_list;
#else
typedef const int *partition_list;
#endif
TIMED(Pready_list, LIST(int n, partition_list partitions, MPI_Request request),
      LIST(n, partitions, request))

WRAPPER(MPI_Parrived)(MPI_Request request, int partition, int *flag)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Parrived)(request, partition, flag);
    poll_enter(t, CALL_Parrived, 0);
    int result = NEXT(Parrived)(request, partition, flag);
    call_return(t);
    poll_leave(t, CALL_Parrived, result == MPI_SUCCESS && *flag);
    return result;
}
#endif

/* One-sided communication. In the form with MPI_Count the unit of displacement is MPI_Aint. */
#define TARGET                                                                                    \
    int target, MPI_Aint place, COUNT target_count, MPI_Datatype target_type
#define TARGET_ARGUMENTS target, place, target_count, target_type

TIMED_ON_COMM(Win_create,
              LIST(void *base, MPI_Aint size, DISPLACEMENT unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win *window),
              LIST(base, size, unit, info, comm, window))
TIMED_ON_COMM(Win_allocate,
              LIST(MPI_Aint size, DISPLACEMENT unit, MPI_Info info, MPI_Comm comm, void *base,
                   MPI_Win *window),
              LIST(size, unit, info, comm, base, window))
TIMED_ON_COMM(Win_allocate_shared,
              LIST(MPI_Aint size, DISPLACEMENT unit, MPI_Info info, MPI_Comm comm, void *base,
                   MPI_Win *window),
              LIST(size, unit, info, comm, base, window))
TIMED(Put,
      LIST(const void *out, COUNT count, MPI_Datatype type, TARGET, MPI_Win window),
      LIST(out, count, type, TARGET_ARGUMENTS, window))
TIMED(Get, LIST(void *in, COUNT count, MPI_Datatype type, TARGET, MPI_Win window),
      LIST(in, count, type, TARGET_ARGUMENTS, window))
TIMED(Accumulate,
      LIST(const void *out, COUNT count, MPI_Datatype type, TARGET, MPI_Op op, MPI_Win window),
      LIST(out, count, type, TARGET_ARGUMENTS, op, window))
TIMED(Get_accumulate,
      LIST(const void *out, COUNT count, MPI_Datatype type, void *in, COUNT in_count,
           MPI_Datatype in_type, TARGET, MPI_Op op, MPI_Win window),
      LIST(out, count, type, in, in_count, in_type, TARGET_ARGUMENTS, op, window))
TIMED(Rput,
      LIST(const void *out, COUNT count, MPI_Datatype type, TARGET, MPI_Win window,
           MPI_Request *request),
      LIST(out, count, type, TARGET_ARGUMENTS, window, request))
TIMED(Rget,
      LIST(void *in, COUNT count, MPI_Datatype type, TARGET, MPI_Win window,
           MPI_Request *request),
      LIST(in, count, type, TARGET_ARGUMENTS, window, request))
TIMED(Raccumulate,
      LIST(const void *out, COUNT count, MPI_Datatype type, TARGET, MPI_Op op, MPI_Win window,
           MPI_Request *request),
      LIST(out, count, type, TARGET_ARGUMENTS, op, window, request))
TIMED(Rget_accumulate,
      LIST(const void *out, COUNT count, MPI_Datatype type, void *in, COUNT in_count,
           MPI_Datatype in_type, TARGET, MPI_Op op, MPI_Win window, MPI_Request *request),
      LIST(out, count, type, in, in_count, in_type, TARGET_ARGUMENTS, op, window, request))

#ifndef LARGE
TIMED(Fetch_and_op,
      LIST(const void *out, void *in, MPI_Datatype type, int target, MPI_Aint place, MPI_Op op,
           MPI_Win window),
      LIST(out, in, type, target, place, op, window))
TIMED(Compare_and_swap,
      LIST(const void *out, const void *compare, void *in, MPI_Datatype type, int target,
           MPI_Aint place, MPI_Win window),
      LIST(out, compare, in, type, target, place, window))
TIMED_ON_COMM(Win_create_dynamic, LIST(MPI_Info info, MPI_Comm comm, MPI_Win *window),
              LIST(info, comm, window))
TIMED(Win_attach, LIST(MPI_Win window, void *base, MPI_Aint size), LIST(window, base, size))
TIMED(Win_detach, LIST(MPI_Win window, const void *base), LIST(window, base))
TIMED(Win_free, LIST(MPI_Win *window), LIST(window))
TIMED(Win_fence, LIST(int assert, MPI_Win window), LIST(assert, window))
TIMED(Win_start, LIST(MPI_Group group, int assert, MPI_Win window), LIST(group, assert, window))
TIMED(Win_complete, LIST(MPI_Win window), LIST(window))
TIMED(Win_post, LIST(MPI_Group group, int assert, MPI_Win window), LIST(group, assert, window))
TIMED(Win_wait, LIST(MPI_Win window), LIST(window))
TIMED(Win_lock, LIST(int type, int rank, int assert, MPI_Win window),
      LIST(type, rank, assert, window))
TIMED(Win_unlock, LIST(int rank, MPI_Win window), LIST(rank, window))
TIMED(Win_lock_all, LIST(int assert, MPI_Win window), LIST(assert, window))
TIMED(Win_unlock_all, LIST(MPI_Win window), LIST(window))
TIMED(Win_flush, LIST(int rank, MPI_Win window), LIST(rank, window))
TIMED(Win_flush_all, LIST(MPI_Win window), LIST(window))
TIMED(Win_flush_local, LIST(int rank, MPI_Win window), LIST(rank, window))
TIMED(Win_flush_local_all, LIST(MPI_Win window), LIST(window))
TIMED(Win_sync, LIST(MPI_Win window), LIST(window))

WRAPPER(MPI_Win_test)(MPI_Win window, int *flag)
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Win_test)(window, flag);
    poll_enter(t, CALL_Win_test, 0);
    int result = NEXT(Win_test)(window, flag);
    call_return(t);
    poll_leave(t, CALL_Win_test, result == MPI_SUCCESS && *flag);
    return result;
}

/* Files. */
TIMED_ON_COMM(File_open,
              LIST(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file),
              LIST(comm, name, mode, info, file))
TIMED(File_close, LIST(MPI_File *file), LIST(file))
TIMED(File_delete, LIST(const char *name, MPI_Info info), LIST(name, info))
TIMED(File_set_size, LIST(MPI_File file, MPI_Offset size), LIST(file, size))
TIMED(File_preallocate, LIST(MPI_File file, MPI_Offset size), LIST(file, size))
TIMED(File_set_view,
      LIST(MPI_File file, MPI_Offset place, MPI_Datatype element, MPI_Datatype type,
           const char *representation, MPI_Info info),
      LIST(file, place, element, type, representation, info))
TIMED(File_sync, LIST(MPI_File file), LIST(file))
TIMED(File_seek_shared, LIST(MPI_File file, MPI_Offset place, int whence),
      LIST(file, place, whence))
#endif

/* What moves bytes: as many as its arguments say. */
#define MOVES_reading(bytes) 0, bytes
#define MOVES_writing(bytes) bytes, 0
#define MOVING(name, way, parameters, arguments)                                                  \
    NEWER_WRAPPER(MPI(name), parameters)                                                          \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(arguments);                                                         \
        uint64_t time = call_open(t);                                                             \
        enter_at(t, time, CALL_##name, 0, MOVES_##way(bytes_of(count, type)), SITE_HERE());       \
        int result = NEXT(name)(arguments);                                                       \
        call_return(t);                                                                           \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }

#define FILE_CALL(name, way, last)                                                                \
    MOVING(name, way,                                                                             \
           LIST(MPI_File file, way buffer, COUNT count, MPI_Datatype type, last * end),           \
           LIST(file, buffer, count, type, end))
#define FILE_AT_CALL(name, way, last)                                                             \
    MOVING(name, way,                                                                             \
           LIST(MPI_File file, MPI_Offset place, way buffer, COUNT count, MPI_Datatype type,      \
                last * end),                                                                      \
           LIST(file, place, buffer, count, type, end))
#define FILE_BEGIN_CALL(name, way)                                                                \
    MOVING(name, way, LIST(MPI_File file, way buffer, COUNT count, MPI_Datatype type),            \
           LIST(file, buffer, count, type))
#define FILE_AT_BEGIN_CALL(name, way)                                                             \
    MOVING(name, way,                                                                             \
           LIST(MPI_File file, MPI_Offset place, way buffer, COUNT count, MPI_Datatype type),     \
           LIST(file, place, buffer, count, type))
#define FILE_END_CALL(name, buffer_type)                                                          \
    TIMED(name, LIST(MPI_File file, buffer_type buffer, MPI_Status *status),                      \
          LIST(file, buffer, status))

typedef void *reading;
typedef const void *writing;

FILE_CALL(File_read, reading, MPI_Status)
FILE_CALL(File_read_all, reading, MPI_Status)
FILE_CALL(File_read_shared, reading, MPI_Status)
FILE_CALL(File_read_ordered, reading, MPI_Status)
FILE_CALL(File_write, writing, MPI_Status)
FILE_CALL(File_write_all, writing, MPI_Status)
FILE_CALL(File_write_shared, writing, MPI_Status)
FILE_CALL(File_write_ordered, writing, MPI_Status)
FILE_CALL(File_iread, reading, MPI_Request)
FILE_CALL(File_iread_all, reading, MPI_Request)
FILE_CALL(File_iread_shared, reading, MPI_Request)
FILE_CALL(File_iwrite, writing, MPI_Request)
FILE_CALL(File_iwrite_all, writing, MPI_Request)
FILE_CALL(File_iwrite_shared, writing, MPI_Request)
FILE_AT_CALL(File_read_at, reading, MPI_Status)
FILE_AT_CALL(File_read_at_all, reading, MPI_Status)
FILE_AT_CALL(File_write_at, writing, MPI_Status)
FILE_AT_CALL(File_write_at_all, writing, MPI_Status)
FILE_AT_CALL(File_iread_at, reading, MPI_Request)
FILE_AT_CALL(File_iread_at_all, reading, MPI_Request)
FILE_AT_CALL(File_iwrite_at, writing, MPI_Request)
FILE_AT_CALL(File_iwrite_at_all, writing, MPI_Request)
FILE_BEGIN_CALL(File_read_all_begin, reading)
FILE_BEGIN_CALL(File_read_ordered_begin, reading)
FILE_BEGIN_CALL(File_write_all_begin, writing)
FILE_BEGIN_CALL(File_write_ordered_begin, writing)
FILE_AT_BEGIN_CALL(File_read_at_all_begin, reading)
FILE_AT_BEGIN_CALL(File_write_at_all_begin, writing)

#ifndef LARGE
FILE_END_CALL(File_read_all_end, reading)
FILE_END_CALL(File_read_ordered_end, reading)
FILE_END_CALL(File_read_at_all_end, reading)
FILE_END_CALL(File_write_all_end, writing)
FILE_END_CALL(File_write_ordered_end, writing)
FILE_END_CALL(File_write_at_all_end, writing)
#endif
