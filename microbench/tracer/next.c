/* Finding MPI: see next.h. */
#define _GNU_SOURCE
#include "next.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaded.h"
#include "meta.h"

function *next_plain[CALLS], *next_large[CALLS];
struct helpers pmpi;
struct handles handles;
bool next_found;

static function *symbol(void *library, const char *prefix, const char *name, const char *suffix)
{
    char whole[64] = "";
    strcat(strcat(strcat(whole, prefix), name), suffix);
    void *object = dlsym(library, whole);
    function *f;
    memcpy(&f, &object, sizeof f); /* ISO C has no cast from one to the other */
    return f;
}

/* Exits without running what would only fail again. */
static _Noreturn void give_up(const char *problem)
{
    complain("%s; set MPICC to the compiler wrapper of the program's MPI, so that popmodel "
             "builds its tracer for it",
             problem);
    _exit(1);
}

#ifdef OPEN_MPI

/* A program that names a variable of a library has a copy of it, which the library uses as well:
 * the one that is found first, before those behind this library. */
static void *variable(void *library, const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found)
        found = dlsym(library, name);
    if (!found)
        give_up("this tracer was built for Open MPI, but the program uses another MPI");
    return found;
}

static void find_handles(void *library)
{
    handles.world = variable(library, "ompi_mpi_comm_world");
    handles.self = variable(library, "ompi_mpi_comm_self");
    handles.no_comm = variable(library, "ompi_mpi_comm_null");
    handles.no_request = variable(library, "ompi_request_null");
    handles.byte = variable(library, "ompi_mpi_byte");
}
#else
/* Whether the program uses the ABI of the standard: handles are other numbers there. */
static bool is_standard(void)
{
    Dl_info of;
    return dladdr((void *)(uintptr_t)pmpi.Comm_rank, &of) && of.dli_fname &&
           strstr(of.dli_fname, "/libmpi_abi.");
}

static void find_handles(void *library)
{
#ifdef MPI_H_ABI
    if (!is_standard())
        give_up("this tracer was built for the ABI of the MPI standard, but the program is not");
#else
    if (dlsym(library, "ompi_mpi_comm_world"))
        give_up("this tracer was not built for Open MPI, but the program uses Open MPI");
    if (is_standard())
        give_up("the program is built for the ABI of the MPI standard, but this tracer is not");
#endif
    handles.world = MPI_COMM_WORLD;
    handles.self = MPI_COMM_SELF;
    handles.no_comm = MPI_COMM_NULL;
    handles.no_request = MPI_REQUEST_NULL;
    handles.byte = MPI_BYTE;
}
#endif

static void find(void)
{
    /* By a function that has no wrapper: library_with() would find this library otherwise. */
    void *library = dlsym(RTLD_NEXT, "PMPI_Init") ? RTLD_NEXT : library_with("PMPI_Comm_rank");
    if (!library)
        give_up("the program calls MPI, but no library with its profiling interface (PMPI) is "
                "loaded");
#define X(name, number, type, value, family) \
    next_plain[CALL_##name] = symbol(library, "PMPI_", #name, ""); \
    next_large[CALL_##name] = symbol(library, "PMPI_", #name, "_c");
    POPMODEL_CALLS(X)
#undef X
#define X(name) pmpi.name = (__typeof__(MPI_##name) *)symbol(library, "PMPI_", #name, "");
    HELPERS(X)
#undef X
    find_handles(library);
    next_found = true;
}

#ifdef OPEN_MPI

function *next_of_fortran(const char *name)
{
    void *library = dlsym(RTLD_NEXT, name) ? RTLD_NEXT : library_with("ompi_comm_rank_f");
    function *f = library ? symbol(library, name, "", "") : NULL;
    if (!f)
        give_up("the program calls MPI from Fortran, but no library with its procedures is loaded");
    return f;
}
#endif

void next_find(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
}
