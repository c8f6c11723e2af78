/* Work that takes a fixed number of cycles. */
#ifndef POPMODEL_DELAY_H
#define POPMODEL_DELAY_H

#include <stdint.h>

/* What the calling thread's delays have come to. */
static _Thread_local uint64_t delayed = 1;

/* `steps` multiplications with an addition (a linear congruential generator), each of which waits
 * for the one before: about 4 cycles each on today's processors. The compiler can neither remove
 * nor reorder them. They go on where the thread's last delay ended: a processor would otherwise
 * overlap two delays in a row, but not two with a construct between them, and the construct would
 * seem to cost what is lost by that. */
static inline void delay(long steps)
{
    uint64_t x = delayed;
    for (long i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    delayed = x;
    /* Through memory: the compiler may not keep it in a register from delay to delay. */
    __asm__ volatile("" : : : "memory");
}

#endif
