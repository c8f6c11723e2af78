/* Work that takes a fixed number of cycles and touches no memory. */
#ifndef POPMODEL_DELAY_H
#define POPMODEL_DELAY_H

#include <stdint.h>

/* `steps` dependent multiplications with an addition (a linear congruential generator): about 4 cycles each on today's
 * processors, none of which the compiler can remove or reorder. */
static inline void delay(long steps)
{
    uint64_t x = (uint64_t)steps;
    for (long i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
}

#endif
