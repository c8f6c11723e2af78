/* Call sites of MPI: see sites.h.
 *
 * The address that a wrapper returns to lies in the program, or in a library that calls MPI for it.
 * Calls from Fortran come through functions of the MPI library itself, whose callers are what is
 * wanted. Following them costs microseconds, so it is done once for each place in such a function:
 * how far above the wrapper's frame its own return address lies is the same every time, as long as
 * its frame has a fixed size. What is found there later counts if it was found by following before.
 */
#define _GNU_SOURCE
#include "sites.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "places.h"

/* Marks of addresses: */
enum {
    OWN = 0,      /* of the program */
    OF_MPI = -1,  /* of the MPI library, not followed yet */
    UNKNOWN = -2, /* of the MPI library; whose frames differ, or cannot be followed */
    /* above 0: words from the wrapper's frame to the return address of what it is in */
};

#define LARGEST_FRAMES ((uintptr_t)64 << 10)

static _Atomic int wanted; /* 0: not asked yet, 1: yes, -1: no */

static bool is_wanted(void)
{
    int known = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (UNLIKELY(!known)) {
        const char *given = getenv("POPMODEL_TRACE_CALL_SITES");
        known = given && strcmp(given, "0") == 0 ? -1 : 1;
        atomic_store(&wanted, known);
    }
    return known > 0;
}

/* Whether one library has one of the entries of MPI itself. What is linked into the program cannot
 * be told apart from it. */
static bool is_of_mpi(const void *address)
{
    static const char *const entries[] = {"PMPI_Init",     "mpi_init_",     "mpi_init",
                                          "mpi_init__",    "MPI_INIT",      "mpi_init_f08_",
                                          "pmpi_init_f08_", "mpi_init_f08ts_"};
    const struct link_map *object = place_object(address);
    if (!object || !object->l_name || !*object->l_name)
        return false;
    void *library = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return false;
    bool found = false;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0] && !found; i++) {
        void *entry = dlsym(library, entries[i]); /* in it, or in one that it needs */
        found = entry && place_object(entry) == object;
    }
    dlclose(library);
    return found;
}

static int32_t classify(const void *address)
{
    return is_of_mpi(address) ? OF_MPI : OWN;
}

static struct places sites =
    PLACES("site", "call sites of MPI beyond 8192: not distinguished", classify);

struct walk {
    const void *from;  /* where MPI's own functions begin */
    const void *found; /* who called the outermost of them */
    uintptr_t end;     /* of their frames */
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *state)
{
    struct walk *walk = state;
    const void *at = (const void *)_Unwind_GetIP(context);
    if (walk->from) {
        if (at == walk->from)
            walk->from = NULL;
        return _URC_NO_REASON;
    }
    if (is_of_mpi(at))
        return _URC_NO_REASON;
    walk->found = at;
    walk->end = _Unwind_GetCFA(context);
    return _URC_NORMAL_STOP;
}

/* The caller of MPI's own functions, and how far above the frame its address is kept; NULL if they
 * cannot be followed. */
static const void *follow(const void *address, const void *const *frame, int32_t *words)
{
    struct walk walk = {.from = address};
    _Unwind_Backtrace(step, &walk);
    uintptr_t begin = (uintptr_t)frame;
    if (!walk.found || walk.end <= begin || walk.end - begin > LARGEST_FRAMES)
        return NULL;
    for (*words = (int32_t)((walk.end - begin) / sizeof *frame) - 1; *words > 0; (*words)--)
        if (frame[*words] == walk.found)
            return walk.found;
    return NULL; /* kept in another form: signed addresses */
}

static unsigned through_mpi(unsigned number, const void *address, const void *const *frame)
{
    _Atomic int32_t *mine = &sites.marks[number - 1];
    int32_t known = place_mark(&sites, number);
    if (LIKELY(known > 0)) {
        unsigned site = place_known(&sites, frame[known]);
        if (LIKELY(site && place_mark(&sites, site) == OWN))
            return site;
    } else if (known == UNKNOWN) {
        return number;
    }
    int32_t words = 0;
    const void *caller = follow(address, frame, &words);
    if (!caller || (known > 0 && words != known)) {
        atomic_store(mine, UNKNOWN);
        return number;
    }
    unsigned site = place_number(&sites, caller);
    atomic_store(mine, words);
    return site;
}

unsigned site_number(const void *address, const void *const *frame)
{
    if (!is_wanted())
        return 0;
    unsigned number = place_number(&sites, address);
    if (UNLIKELY(!number))
        return 0;
    return LIKELY(place_mark(&sites, number) == OWN) ? number
                                                     : through_mpi(number, address, frame);
}
