/* Making and freeing communicators. */
#define _GNU_SOURCE
#include "messages.h"
#include "meta.h"

#define LIST(...) __VA_ARGS__

/* A call that makes a communicator out of another, which its members share. */
#define CHILD(name, tag, parameters, arguments)                                                   \
    WRAPPER(MPI_##name)(parameters, MPI_Comm * made)                                              \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(arguments, made);                                                   \
        const struct communicator *parent = communicator_of(t, comm);                             \
        call_enter(t, CALL_##name, parent->id);                                                   \
        int result = NEXT(name)(arguments, made);                                                 \
        if (result == MPI_SUCCESS)                                                                \
            communicator_new(*made, parent, tag);                                                 \
        call_return(t);                                                                           \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }

CHILD(Comm_dup, 0, LIST(MPI_Comm comm), LIST(comm))
CHILD(Comm_dup_with_info, 0, LIST(MPI_Comm comm, MPI_Info info), LIST(comm, info))
CHILD(Comm_create, 0, LIST(MPI_Comm comm, MPI_Group group), LIST(comm, group))
CHILD(Comm_create_group, tag, LIST(MPI_Comm comm, MPI_Group group, int tag),
      LIST(comm, group, tag))
CHILD(Comm_split, 0, LIST(MPI_Comm comm, int color, int order), LIST(comm, color, order))
CHILD(Comm_split_type, 0, LIST(MPI_Comm comm, int type, int order, MPI_Info info),
      LIST(comm, type, order, info))
CHILD(Cart_create, 0,
      LIST(MPI_Comm comm, int n, const int sizes[], const int periods[], int reorder),
      LIST(comm, n, sizes, periods, reorder))
CHILD(Cart_sub, 0, LIST(MPI_Comm comm, const int kept[]), LIST(comm, kept))
CHILD(Graph_create, 0,
      LIST(MPI_Comm comm, int n, const int index[], const int edges[], int reorder),
      LIST(comm, n, index, edges, reorder))
CHILD(Dist_graph_create, 0,
      LIST(MPI_Comm comm, int n, const int sources[], const int degrees[],
           const int destinations[], const int weights[], MPI_Info info, int reorder),
      LIST(comm, n, sources, degrees, destinations, weights, info, reorder))
CHILD(Dist_graph_create_adjacent, 0,
      LIST(MPI_Comm comm, int in, const int sources[], const int in_weights[], int out,
           const int destinations[], const int out_weights[], MPI_Info info, int reorder),
      LIST(comm, in, sources, in_weights, out, destinations, out_weights, info, reorder))
CHILD(Intercomm_merge, 0, LIST(MPI_Comm comm, int high), LIST(comm, high))

/* One that its members made out of several, or out of none. `on` is for the trace only. */
#define FOUNDLING(name, on, tag, parameters, arguments)                                           \
    NEWER_WRAPPER(MPI_##name, parameters, MPI_Comm * made)                                        \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(arguments, made);                                                   \
        call_enter(t, CALL_##name, on);                                                           \
        int result = NEXT(name)(arguments, made);                                                 \
        if (result == MPI_SUCCESS)                                                                \
            communicator_new(*made, NULL, tag);                                                   \
        call_return(t);                                                                           \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }

/* FNV-1a, 32 bits: a tag for a text. */
static int number_of(const char *text)
{
    uint32_t hash = 0x811c9dc5u;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x01000193u;
    return (int)(hash & 0x7fffffffu);
}

FOUNDLING(Comm_create_from_group, 0, number_of(text),
          LIST(MPI_Group group, const char *text, MPI_Info info, MPI_Errhandler handler),
          LIST(group, text, info, handler))
FOUNDLING(Intercomm_create, communicator_of(t, comm)->id, tag,
          LIST(MPI_Comm comm, int leader, MPI_Comm peers, int remote_leader, int tag),
          LIST(comm, leader, peers, remote_leader, tag))
FOUNDLING(Intercomm_create_from_groups, 0, number_of(text),
          LIST(MPI_Group local, int leader, MPI_Group remote, int remote_leader, const char *text,
               MPI_Info info, MPI_Errhandler handler),
          LIST(local, leader, remote, remote_leader, text, info, handler))
FOUNDLING(Comm_accept, communicator_of(t, comm)->id, 0,
          LIST(const char *port, MPI_Info info, int root, MPI_Comm comm),
          LIST(port, info, root, comm))
FOUNDLING(Comm_connect, communicator_of(t, comm)->id, 0,
          LIST(const char *port, MPI_Info info, int root, MPI_Comm comm),
          LIST(port, info, root, comm))
FOUNDLING(Comm_join, 0, 0, LIST(int socket), LIST(socket))

#define SPAWNED "processes were spawned: messages to and from them are not matched"

WRAPPER(MPI_Comm_spawn)(const char *command, char *arguments[], int most, MPI_Info info, int root,
                        MPI_Comm comm, MPI_Comm *made, int errors[])
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Comm_spawn)(command, arguments, most, info, root, comm, made, errors);
    call_enter(t, CALL_Comm_spawn, communicator_of(t, comm)->id);
    int result = NEXT(Comm_spawn)(command, arguments, most, info, root, comm, made, errors);
    if (result == MPI_SUCCESS)
        communicator_new(*made, NULL, 0);
    note(SPAWNED);
    call_return(t);
    call_leave(t, CALL_Comm_spawn, 0);
    return result;
}

WRAPPER(MPI_Comm_spawn_multiple)(int n, char *commands[], char **arguments[], const int most[],
                                 const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *made,
                                 int errors[])
{
    struct thread *t = call_begin();
    if (!t)
        return NEXT(Comm_spawn_multiple)(n, commands, arguments, most, infos, root, comm, made,
                                         errors);
    call_enter(t, CALL_Comm_spawn_multiple, communicator_of(t, comm)->id);
    int result = NEXT(Comm_spawn_multiple)(n, commands, arguments, most, infos, root, comm, made,
                                           errors);
    if (result == MPI_SUCCESS)
        communicator_new(*made, NULL, 0);
    note(SPAWNED);
    call_return(t);
    call_leave(t, CALL_Comm_spawn_multiple, 0);
    return result;
}

/* The new one can be used when the request has completed (completion.c). Its handle is there at
 * once, and must be taken at once: called from Fortran, MPI gets the address of a variable in the
 * interface between the languages, which is gone by then. */
#define LATER(name, parameters, arguments)                                                        \
    WRAPPER(MPI_##name)(parameters, MPI_Comm * made, MPI_Request * request)                       \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(arguments, made, request);                                          \
        const struct communicator *parent = communicator_of(t, comm);                             \
        call_enter(t, CALL_##name, parent->id);                                                   \
        *made = handles.no_comm;                                                                  \
        int result = NEXT(name)(arguments, made, request);                                        \
        if (result == MPI_SUCCESS)                                                                \
            promise(parent, *made, *request);                                                     \
        call_return(t);                                                                           \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }

static void promise(const struct communicator *parent, MPI_Comm made, MPI_Request request)
{
    if (made == handles.no_comm) {
        note("this MPI reports communicators of MPI_Comm_idup late: their messages may not be matched");
        return;
    }
    struct communicator *promised = communicator_promise(parent);
    struct request *r = promised ? request_add(request, DUPLICATE_REQUEST, promised) : NULL;
    if (r)
        r->duplicate = made;
    else
        note("not enough memory for a communicator: its messages are not recorded");
}

LATER(Comm_idup, LIST(MPI_Comm comm), LIST(comm))
LATER(Comm_idup_with_info, LIST(MPI_Comm comm, MPI_Info info), LIST(comm, info))

/* MPI calls back when it is gone (communicators.c). */
#define FREEING(name)                                                                             \
    WRAPPER(MPI_##name)(MPI_Comm *comm)                                                           \
    {                                                                                             \
        struct thread *t = call_begin();                                                          \
        if (!t)                                                                                   \
            return NEXT(name)(comm);                                                              \
        call_enter(t, CALL_##name, communicator_of(t, *comm)->id);                                \
        int result = NEXT(name)(comm);                                                            \
        call_return(t);                                                                           \
        call_leave(t, CALL_##name, 0);                                                            \
        return result;                                                                            \
    }

FREEING(Comm_free)
FREEING(Comm_disconnect)
