/* The entries of an OpenMP runtime that the wrappers pass their calls on to.
 *
 *     EXPORTED void GOMP_barrier(void)
 *     {
 *         KNOW(GOMP_barrier);
 *         ...
 *         next();
 *     }
 */
#ifndef POPMODEL_ENTRIES_H
#define POPMODEL_ENTRIES_H

#include "state.h"

typedef void function(void);

/* The function of this name behind this library, or in one that the program has opened for itself.
 * NULL if there is none. */
function *entry_if_any(const char *name);

/* The same. Ends the program where there is none, as the dynamic linker would have done. */
function *entry(const char *name);

/* Finds it when it is first needed: a program has no more entries than its runtime. */
#define KNOW(name)                         \
    static __typeof__(name) *_Atomic next; \
    if (UNLIKELY(!next))                   \
        next = (__typeof__(name) *)entry(#name)

#endif
