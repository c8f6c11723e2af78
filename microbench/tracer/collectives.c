/* Collective operations on communicators, blocking and nonblocking.
 *
 * The bytes that a call sends and receives are counted as Extrae counts them, which is by what its
 * arguments say, not by what an algorithm moves:
 *
 *   Barrier              nothing
 *   Bcast                the root sends the buffer, the others receive it
 *   Reduce               the root receives the buffer, the others send it
 *   Allreduce, (Ex)Scan  each sends and receives the buffer
 *   Reduce_scatter       each sends the parts of all, and receives its own
 *   Gather(v)            each sends its part, the root receives all parts
 *   Scatter(v)           each receives its part, the root sends all parts
 *   Allgather(v)         each sends its part and receives all
 *   Alltoall             each sends the part of ONE partner, and receives those of all
 *   Alltoallv, -w        each sends and receives the parts of all
 *
 * With MPI_IN_PLACE what is sent is told by the receiving arguments, and the others may be
 * anything. In an intercommunicator the partners are those of the other group, the root is the one
 * that says MPI_ROOT, and others of its group (MPI_PROC_NULL) do nothing.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "messages.h"

struct sizes {
    int64_t sent, received;
    bool root;
};

static int partners(const struct communicator *c)
{
    return c->remote ? c->remote : c->size;
}

static bool is_root(const struct communicator *c, int root)
{
    return root == (c->remote ? MPI_ROOT : c->rank);
}

/* Whether this process has a part in a rooted operation. */
static bool has_part(const struct communicator *c, int root)
{
    return !c->remote || root != MPI_PROC_NULL;
}

static int64_t sum(const COUNT *counts, int n)
{
    int64_t all = 0;
    for (int i = 0; i < n; i++)
        all += counts[i];
    return all;
}

static int64_t sum_of_types(const COUNT *counts, const MPI_Datatype *types, int n)
{
    int64_t all = 0;
    for (int i = 0; i < n; i++)
        all += bytes_of(counts[i], types[i]);
    return all;
}

/* Of one who sends to all others, or (`collects`) receives from them. */
static struct sizes rooted(const struct communicator *c, int root, bool collects, int64_t one,
                           int64_t all)
{
    struct sizes s = {.root = is_root(c, root)};
    if (s.root)
        *(collects ? &s.received : &s.sent) = all;
    else if (has_part(c, root))
        *(collects ? &s.sent : &s.received) = one;
    return s;
}

static struct sizes both(int64_t sent, int64_t received)
{
    return (struct sizes){.sent = sent, .received = received};
}

IN_WRAPPER void enter(struct thread *t, uint64_t time, int call, const struct communicator *c,
                      struct sizes sizes)
{
    enter_at(t, time, call, c->id, sizes.sent, sizes.received, SITE_HERE());
    if (sizes.root && t->entered)
        put(t, t->time, ROOT, 0, c->id, 0, 0);
}

static void remember(struct thread *t, MPI_Request request, struct communicator *c)
{
    struct request *r = t->entered ? request_add(request, COLLECTIVE_REQUEST, c) : NULL;
    if (!r)
        return;
    r->number = collective_number();
    put(t, t->time, COLLECT, 0, c->id, r->number, 0);
}

#define LIST(...) __VA_ARGS__

/* Both forms of a collective operation, out of one line: how many bytes, what parameters. */
#define COLLECTIVE(name, iname, sizes, parameters, arguments)                                     \
    WRAPPER(MPI(name))(parameters)                                                                \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(arguments);                                                         \
        const struct communicator *c = communicator_of(t, comm);                                  \
        uint64_t time = call_open(t);                                                             \
        enter(t, time, CALL_##name, c, sizes);                                                    \
        int result = NEXT(name)(arguments);                                                       \
        call_return(t);                                                                           \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }                                                                                             \
                                                                                                  \
    WRAPPER(MPI(iname))(parameters, MPI_Request * request)                                        \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(iname)(arguments, request);                                               \
        struct communicator *c = communicator_of(t, comm);                                        \
        uint64_t time = call_open(t);                                                             \
        enter(t, time, CALL_##iname, c, sizes);                                                   \
        int result = NEXT(iname)(arguments, request);                                             \
        if (result == MPI_SUCCESS)                                                                \
            remember(t, *request, c);                                                             \
        call_return(t);                                                                           \
        call_leave(t, CALL_##iname, 0);                                                           \
        return result;                                                                            \
    }

#ifndef LARGE
COLLECTIVE(Barrier, Ibarrier, both(0, 0), LIST(MPI_Comm comm), LIST(comm))
#endif

static struct sizes bcast_sizes(const struct communicator *c, COUNT count, MPI_Datatype type,
                                int root)
{
    int64_t bytes = has_part(c, root) ? bytes_of(count, type) : 0;
    return rooted(c, root, false, bytes, bytes);
}

COLLECTIVE(Bcast, Ibcast, bcast_sizes(c, count, type, root),
           LIST(void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
           LIST(buffer, count, type, root, comm))

static struct sizes reduce_sizes(const struct communicator *c, COUNT count, MPI_Datatype type,
                                 int root)
{
    int64_t bytes = has_part(c, root) ? bytes_of(count, type) : 0;
    return rooted(c, root, true, bytes, bytes);
}

COLLECTIVE(Reduce, Ireduce, reduce_sizes(c, count, type, root),
           LIST(const void *out, void *in, COUNT count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm),
           LIST(out, in, count, type, op, root, comm))

static struct sizes same(int64_t bytes)
{
    return both(bytes, bytes);
}

#define REDUCTION(name, iname)                                                                    \
    COLLECTIVE(name, iname, same(bytes_of(count, type)),                                          \
               LIST(const void *out, void *in, COUNT count, MPI_Datatype type, MPI_Op op,         \
                    MPI_Comm comm),                                                               \
               LIST(out, in, count, type, op, comm))

REDUCTION(Allreduce, Iallreduce)
REDUCTION(Scan, Iscan)
REDUCTION(Exscan, Iexscan)

/* The counts are those of this process's group, in an intercommunicator as well. */
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           both(bytes_of(sum(counts, c->size), type),
                bytes_of(c->size ? counts[c->rank] : 0, type)),
           LIST(const void *out, void *in, const COUNT counts[], MPI_Datatype type, MPI_Op op,
                MPI_Comm comm),
           LIST(out, in, counts, type, op, comm))

COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block,
           both(c->size * bytes_of(count, type), bytes_of(count, type)),
           LIST(const void *out, void *in, COUNT count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm),
           LIST(out, in, count, type, op, comm))

/* The root of a gather sends to itself, too, and that of a scatter receives: not those of
 * intercommunicators. What it has in place it has told by the arguments of the other side. */
static struct sizes gather_sizes(const struct communicator *c, int root, const void *out,
                                 COUNT out_count, MPI_Datatype out_type, int64_t in_own,
                                 int64_t in_all)
{
    int64_t own = 0;
    bool sends = has_part(c, root) && !(c->remote && is_root(c, root));
    if (sends)
        own = is_root(c, root) && out == MPI_IN_PLACE ? in_own : bytes_of(out_count, out_type);
    return (struct sizes){own, in_all, is_root(c, root)};
}

static struct sizes scatter_sizes(const struct communicator *c, int root, int64_t out_own,
                                  int64_t out_all, const void *in, COUNT in_count,
                                  MPI_Datatype in_type)
{
    int64_t own = 0;
    bool receives = has_part(c, root) && !(c->remote && is_root(c, root));
    if (receives)
        own = is_root(c, root) && in == MPI_IN_PLACE ? out_own : bytes_of(in_count, in_type);
    return (struct sizes){out_all, own, is_root(c, root)};
}

/* What a root has for one partner, for all of them; 0 elsewhere: the arguments mean nothing. */
static int64_t equal_part(const struct communicator *c, int root, COUNT count, MPI_Datatype type)
{
    return is_root(c, root) ? bytes_of(count, type) : 0;
}

static int64_t own_part(const struct communicator *c, int root, const COUNT *counts,
                        MPI_Datatype type)
{
    return is_root(c, root) && !c->remote && c->size ? bytes_of(counts[c->rank], type) : 0;
}

static int64_t all_parts(const struct communicator *c, int root, const COUNT *counts,
                         MPI_Datatype type)
{
    return is_root(c, root) ? bytes_of(sum(counts, partners(c)), type) : 0;
}

COLLECTIVE(Gather, Igather,
           gather_sizes(c, root, out, out_count, out_type, equal_part(c, root, in_count, in_type),
                        partners(c) * equal_part(c, root, in_count, in_type)),
           LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in, COUNT in_count,
                MPI_Datatype in_type, int root, MPI_Comm comm),
           LIST(out, out_count, out_type, in, in_count, in_type, root, comm))

COLLECTIVE(Gatherv, Igatherv,
           gather_sizes(c, root, out, out_count, out_type, own_part(c, root, in_counts, in_type),
                        all_parts(c, root, in_counts, in_type)),
           LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in,
                const COUNT in_counts[], const DISPLACEMENT in_places[], MPI_Datatype in_type,
                int root, MPI_Comm comm),
           LIST(out, out_count, out_type, in, in_counts, in_places, in_type, root, comm))

COLLECTIVE(Scatter, Iscatter,
           scatter_sizes(c, root, equal_part(c, root, out_count, out_type),
                         partners(c) * equal_part(c, root, out_count, out_type), in, in_count,
                         in_type),
           LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in, COUNT in_count,
                MPI_Datatype in_type, int root, MPI_Comm comm),
           LIST(out, out_count, out_type, in, in_count, in_type, root, comm))

COLLECTIVE(Scatterv, Iscatterv,
           scatter_sizes(c, root, own_part(c, root, out_counts, out_type),
                         all_parts(c, root, out_counts, out_type), in, in_count, in_type),
           LIST(const void *out, const COUNT out_counts[], const DISPLACEMENT out_places[],
                MPI_Datatype out_type, void *in, COUNT in_count, MPI_Datatype in_type, int root,
                MPI_Comm comm),
           LIST(out, out_counts, out_places, out_type, in, in_count, in_type, root, comm))

static struct sizes exchange_sizes(const void *out, COUNT out_count, MPI_Datatype out_type,
                                   int64_t in_place, int64_t received)
{
    return both(out == MPI_IN_PLACE ? in_place : bytes_of(out_count, out_type), received);
}

COLLECTIVE(Allgather, Iallgather,
           exchange_sizes(out, out_count, out_type, bytes_of(in_count, in_type),
                          partners(c) * bytes_of(in_count, in_type)),
           LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in, COUNT in_count,
                MPI_Datatype in_type, MPI_Comm comm),
           LIST(out, out_count, out_type, in, in_count, in_type, comm))

COLLECTIVE(Allgatherv, Iallgatherv,
           exchange_sizes(out, out_count, out_type,
                          bytes_of(c->size && !c->remote ? in_counts[c->rank] : 0, in_type),
                          bytes_of(sum(in_counts, partners(c)), in_type)),
           LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in,
                const COUNT in_counts[], const DISPLACEMENT in_places[], MPI_Datatype in_type,
                MPI_Comm comm),
           LIST(out, out_count, out_type, in, in_counts, in_places, in_type, comm))

COLLECTIVE(Alltoall, Ialltoall,
           exchange_sizes(out, out_count, out_type, bytes_of(in_count, in_type),
                          partners(c) * bytes_of(in_count, in_type)),
           LIST(const void *out, COUNT out_count, MPI_Datatype out_type, void *in, COUNT in_count,
                MPI_Datatype in_type, MPI_Comm comm),
           LIST(out, out_count, out_type, in, in_count, in_type, comm))

static struct sizes alltoallv_sizes(const struct communicator *c, const void *out,
                                    const COUNT *out_counts, MPI_Datatype out_type,
                                    const COUNT *in_counts, MPI_Datatype in_type)
{
    int64_t received = bytes_of(sum(in_counts, partners(c)), in_type);
    if (out == MPI_IN_PLACE)
        return both(received, received);
    return both(bytes_of(sum(out_counts, partners(c)), out_type), received);
}

COLLECTIVE(Alltoallv, Ialltoallv,
           alltoallv_sizes(c, out, out_counts, out_type, in_counts, in_type),
           LIST(const void *out, const COUNT out_counts[], const DISPLACEMENT out_places[],
                MPI_Datatype out_type, void *in, const COUNT in_counts[],
                const DISPLACEMENT in_places[], MPI_Datatype in_type, MPI_Comm comm),
           LIST(out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, comm))

static struct sizes alltoallw_sizes(const struct communicator *c, const void *out,
                                    const COUNT *out_counts, const MPI_Datatype *out_types,
                                    const COUNT *in_counts, const MPI_Datatype *in_types)
{
    int64_t received = sum_of_types(in_counts, in_types, partners(c));
    if (out == MPI_IN_PLACE)
        return both(received, received);
    return both(sum_of_types(out_counts, out_types, partners(c)), received);
}

COLLECTIVE(Alltoallw, Ialltoallw,
           alltoallw_sizes(c, out, out_counts, out_types, in_counts, in_types),
           LIST(const void *out, const COUNT out_counts[], const DISPLACEMENT out_places[],
                const MPI_Datatype out_types[], void *in, const COUNT in_counts[],
                const DISPLACEMENT in_places[], const MPI_Datatype in_types[], MPI_Comm comm),
           LIST(out, out_counts, out_places, out_types, in, in_counts, in_places, in_types, comm))
