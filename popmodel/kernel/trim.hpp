// Memory that is free goes back to the system where it lies between what is held, too.
#pragma once

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace popmodel {

inline void trim() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

} // namespace popmodel
