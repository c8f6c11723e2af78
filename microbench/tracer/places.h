/* Addresses in the program's code, for the names and lines that are looked up after the run.
 *
 * A table only grows: what is known is found without a lock, on every region and every call.
 */
#ifndef POPMODEL_PLACES_H
#define POPMODEL_PLACES_H

#include <link.h>
#include <pthread.h>
#include <stdbool.h>

#include "state.h"

#define PLACE_SLOTS (1u << 14)

struct places {
    const char *event;    /* of the meta file, for each address */
    const char *too_many; /* a note */
    int32_t (*classify)(const void *address); /* its mark at first; NULL: 0 */
    const void *_Atomic table[PLACE_SLOTS];   /* the number of an address is its slot + 1 */
    _Atomic int32_t marks[PLACE_SLOTS];       /* what the owner of the table knows of it */
    unsigned count;
    pthread_mutex_t adding;
};

#define PLACES(event_, too_many_, classify_)                                                      \
    {                                                                                             \
        .event = (event_), .too_many = (too_many_), .classify = (classify_),                      \
        .adding = PTHREAD_MUTEX_INITIALIZER                                                       \
    }

/* Number of an address, from 1 to PLACE_SLOTS; adds one that is not known. 0 for NULL, and for what
 * the table has no room for. */
unsigned place_number(struct places *, const void *address);

/* The same without adding: 0 for what is not known. */
unsigned place_known(const struct places *, const void *address);

/* The address of a number, NULL of 0. */
const void *place_address(const struct places *, unsigned number);

static inline int32_t place_mark(const struct places *places, unsigned number)
{
    return atomic_load_explicit(&places->marks[number - 1], memory_order_relaxed);
}

/* The program or library that an address lies in; NULL if there is none. */
struct link_map *place_object(const void *address);

#endif
