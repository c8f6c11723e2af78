/* The choice of vector instructions, at run time: the node that measures is not the one that
 * compiled. */
#include "vectors.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define ON_X86 1
#include <immintrin.h>
#endif

#define KEEP_4(a, b, c, d)                                                                         \
    KEEP(a);                                                                                       \
    KEEP(b);                                                                                       \
    KEEP(c);                                                                                       \
    KEEP(d)

#ifdef ON_X86
#define KEEP(vector) __asm__ volatile("" : "+v"(vector))
#define WIDTH 64
#define TARGET __attribute__((target("avx512f")))
#define NAMED(name) name##_avx512
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#include "vector_kernels.h"
#undef WIDTH
#undef TARGET
#undef NAMED
#undef FMA
#undef KEEP

#define KEEP(vector) __asm__ volatile("" : "+x"(vector))
#define WIDTH 32
#define TARGET __attribute__((target("avx2,fma")))
#define NAMED(name) name##_avx2
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#include "vector_kernels.h"
#undef WIDTH
#undef TARGET
#undef NAMED
#undef FMA
#undef KEEP
#endif

/* 128 bits: what every x86-64 (SSE2) and every aarch64 (NEON) has. Longer vectors of other kinds,
 * such as SVE's, are not used. Where the instruction set has a fused multiply-add,
 * -ffp-contract=fast makes one of it. */
#if defined(__x86_64__)
#define KEEP(vector) __asm__ volatile("" : "+x"(vector))
#elif defined(__aarch64__)
#define KEEP(vector) __asm__ volatile("" : "+w"(vector))
#elif defined(__powerpc64__)
#define KEEP(vector) __asm__ volatile("" : "+v"(vector))
#else /* through memory: right, but slower than the processor is */
#define KEEP(vector) __asm__ volatile("" : "+m"(vector))
#endif
#define WIDTH 16
#define TARGET
#define NAMED(name) name##_128
#define FMA(a, b, c) ((a) * (b) + (c))
#include "vector_kernels.h"

#define ALL(instructions, doubles, set)                                                            \
    (struct vectors)                                                                               \
    {                                                                                              \
        instructions, doubles, fma_##set, load_##set, store_##set, update_##set, triad_##set,      \
            mixed_##set                                                                            \
    }

struct vectors widest_vectors(void)
{
#ifdef ON_X86
    if (__builtin_cpu_supports("avx512f"))
        return ALL("AVX-512", 8, avx512);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return ALL("AVX2", 4, avx2);
#endif
    return ALL("128 bits", 2, 128);
}
