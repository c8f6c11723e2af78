/* Whether a runtime has taken us for its tool: then the wrappers of its entries record nothing. */
#ifndef POPMODEL_OPENMP_OMPT_H
#define POPMODEL_OPENMP_OMPT_H

#include <stdatomic.h>
#include <stdbool.h>

extern _Atomic bool ompt_in_use;

#endif
