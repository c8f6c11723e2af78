/* Loops whose iterations LLVM's runtime hands out while they run: the tool interface says when a
 * loop begins and ends, but not what handing out takes, so the entry that compiled code calls for
 * the next iterations is wrapped.
 */
#define _GNU_SOURCE
#include "entries.h"
#include "openmp.h"
#include "openmp_ompt.h"

#define NEXT_CHUNK(name, type, stride)                                                        \
    EXPORTED int name(void *where, int thread, int *last, type *from, type *to, stride *step) \
    {                                                                                         \
        KNOW(name);                                                                           \
        struct thread *t = ompt_in_use ? thread_here() : NULL;                                \
        if (t)                                                                                \
            construct_enter(t, SCHEDULING, 0);                                                \
        int result = next(where, thread, last, from, to, step);                               \
        if (t)                                                                                \
            construct_leave(t, SCHEDULING, 0);                                                \
        return result;                                                                        \
    }

NEXT_CHUNK(__kmpc_dispatch_next_4, int32_t, int32_t)
NEXT_CHUNK(__kmpc_dispatch_next_4u, uint32_t, int32_t)
NEXT_CHUNK(__kmpc_dispatch_next_8, int64_t, int64_t)
NEXT_CHUNK(__kmpc_dispatch_next_8u, uint64_t, int64_t)
