/* The functions of the MPI library that the wrappers call.
 *
 * This library is not linked with MPI, so that it can be loaded into any program and no second MPI
 * comes with it. The entries are found when they are first needed: in the libraries behind this
 * one, else in one that the program has loaded for itself (interpreters do). Open MPI's predefined
 * handles are addresses of its variables, so they are found in the same way and must not be named
 * here otherwise (nm -u of this library shows nothing of MPI, which a test makes sure of).
 */
#ifndef POPMODEL_NEXT_H
#define POPMODEL_NEXT_H

#include <mpi.h>
#include <stdbool.h>

#include "declare.h"
#include "state.h"

typedef void function(void);

/* By number of calls.h; what a library does not have is NULL, and no program can call it. */
extern function *next_plain[CALLS];
extern function *next_large[CALLS]; /* MPI_Send_c and its like */

#define NEXT_PLAIN(name) ((__typeof__(MPI_##name) *)next_plain[CALL_##name])
#define NEXT_LARGE(name) ((__typeof__(MPI_##name##_c) *)next_large[CALL_##name])

/* Functions that the wrappers need for themselves. */
#define HELPERS(X) \
    X(Cart_shift) X(Cartdim_get) X(Comm_create_keyval) X(Comm_free) X(Comm_get_attr) X(Comm_get_parent) X(Comm_dup) \
    X(Comm_group) X(Comm_rank) X(Comm_remote_group) X(Comm_remote_size) X(Comm_set_attr) \
    X(Comm_size) X(Comm_test_inter) X(Dist_graph_neighbors) X(Dist_graph_neighbors_count) \
    X(Error_class) X(Get_count) X(Get_elements_x) X(Graph_neighbors) X(Graph_neighbors_count) \
    X(Get_library_version) X(Group_free) X(Group_size) X(Group_translate_ranks) \
    X(Pcontrol) X(Query_thread) X(Test_cancelled) X(Topo_test) X(Type_size) X(Type_size_x) \
    X(Allgather) X(Recv) X(Send)

extern struct helpers {
#define X(name) __typeof__(MPI_##name) *name;
    HELPERS(X)
#undef X
} pmpi;

extern struct handles {
    MPI_Comm world, self, no_comm;
    MPI_Request no_request;
    MPI_Datatype byte;
} handles;

extern bool next_found;

/* Finds all of them, or ends the program with a message where there is no MPI behind this library,
 * or another make of MPI than the one that it was built for: going on would end in nonsense. */
void next_find(void);

/* A procedure of Open MPI for Fortran, by its name in the library; never NULL. */
function *next_of_fortran(const char *name);

#endif
