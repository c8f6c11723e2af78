/* Where in the program a call of MPI stands: the address that it returns to. */
#ifndef POPMODEL_SITES_H
#define POPMODEL_SITES_H

#include "state.h"

/* Number of a call site, 1 to 16384; 0 where it is not known, or not wanted.
 *
 * address: to which the wrapper of the call returns
 * frame:   of the wrapper (__builtin_frame_address), below what its callers have on the stack */
unsigned site_number(const void *address, const void *const *frame);

/* Of whoever calls the function that this stands in, which has to be one that is always inlined
 * into the wrapper. */
#define SITE_HERE()                                                                               \
    site_number(__builtin_extract_return_addr(__builtin_return_address(0)),                       \
                (const void *const *)__builtin_frame_address(0))

#endif
