/* Functions of parallel regions and tasks. */
#include "openmp.h"
#include "places.h"

static struct places functions =
    PLACES("function", "functions of OpenMP regions and tasks beyond 8192: not distinguished",
           NULL);

unsigned function_number(const void *address)
{
    return place_number(&functions, address);
}

const void *function_address(unsigned number)
{
    return place_address(&functions, number);
}
