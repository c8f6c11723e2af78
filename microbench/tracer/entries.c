/* Finding the entries of OpenMP runtimes: see entries.h. */
#define _GNU_SOURCE
#include "entries.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "loaded.h"
#include "meta.h"

static void *opened; /* a runtime that came with what the program has opened */

static void find_opened(void)
{
    /* Every runtime has this function, and this library does not wrap it. */
    opened = library_with("omp_get_thread_num");
}

function *entry_if_any(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void *object = dlsym(RTLD_NEXT, name);
    if (!object) {
        pthread_once(&once, find_opened);
        object = opened ? dlsym(opened, name) : NULL;
    }
    function *found;
    memcpy(&found, &object, sizeof found); /* ISO C has no cast from one to the other */
    return found;
}

function *entry(const char *name)
{
    function *found = entry_if_any(name);
    if (!found) {
        complain("the program calls %s, which no loaded library provides; set "
                 "POPMODEL_TRACE_OPENMP=off to see whether it runs untraced",
                 name);
        _exit(127);
    }
    return found;
}
