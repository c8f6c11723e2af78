/* Loops of vector instructions, for one width; vectors.c includes this file once per instruction
 * set with
 *
 *     WIDTH          bytes of a vector
 *     TARGET         the function attribute that admits the instructions
 *     NAMED(name)    the names of this set's functions
 *     FMA(a, b, c)   a * b + c of vectors of doubles
 *     KEEP(vector)   makes the compiler believe that the vector is used, and changed, in a register
 *
 * The vectors are written out instead of left to the compiler: whether, and how wide, a loop is
 * vectorised differs from compiler to compiler and from -O2 to -O3, and none of these loops is
 * about the compiler. There are no streaming stores: a store reads its line first, as it does in
 * the loops of applications. */

typedef double NAMED(vector) __attribute__((vector_size(WIDTH), aligned(WIDTH), may_alias));

enum { NAMED(PER_VECTOR) = WIDTH / sizeof(double) };

/* 12 chains: more than latency x units (4 x 2 today), and as many as 16 registers hold beside two
 * constants. */
TARGET static void NAMED(fma)(long repeats)
{
    NAMED(vector) b, c, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11;
    /* Converges to 1: neither overflow nor denormal numbers slow it down. */
    for (int i = 0; i < NAMED(PER_VECTOR); i++) {
        b[i] = 0.5;
        c[i] = 0.5;
    }
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = s11 = b;
    for (long i = 0; i < repeats; i++) {
        s0 = FMA(s0, b, c);
        s1 = FMA(s1, b, c);
        s2 = FMA(s2, b, c);
        s3 = FMA(s3, b, c);
        s4 = FMA(s4, b, c);
        s5 = FMA(s5, b, c);
        s6 = FMA(s6, b, c);
        s7 = FMA(s7, b, c);
        s8 = FMA(s8, b, c);
        s9 = FMA(s9, b, c);
        s10 = FMA(s10, b, c);
        s11 = FMA(s11, b, c);
        KEEP_4(s0, s1, s2, s3);
        KEEP_4(s4, s5, s6, s7);
        KEEP_4(s8, s9, s10, s11);
    }
}

/* Reads `n` 8-byte words, a multiple of 64, `sweeps` times, and does nothing with them: additions
 * would be the limit in the first-level cache. */
TARGET static void NAMED(load)(const double *array, long n, long sweeps)
{
    const NAMED(vector) *from = (const NAMED(vector) *)array;
    long vectors = n / NAMED(PER_VECTOR);
    for (long sweep = 0; sweep < sweeps; sweep++) {
        for (long i = 0; i < vectors; i += 8) {
            NAMED(vector) v0 = from[i], v1 = from[i + 1], v2 = from[i + 2], v3 = from[i + 3];
            NAMED(vector) v4 = from[i + 4], v5 = from[i + 5], v6 = from[i + 6], v7 = from[i + 7];
            KEEP_4(v0, v1, v2, v3);
            KEEP_4(v4, v5, v6, v7);
        }
        __asm__ volatile("" : : : "memory"); /* the array may have changed: read it again */
    }
}

TARGET static void NAMED(store)(double *array, long n, long sweeps)
{
    NAMED(vector) *to = (NAMED(vector) *)array;
    long vectors = n / NAMED(PER_VECTOR);
    NAMED(vector) value;
    for (int i = 0; i < NAMED(PER_VECTOR); i++)
        value[i] = 1.5 + i;
    for (long sweep = 0; sweep < sweeps; sweep++) {
        for (long i = 0; i < vectors; i += 8) {
            to[i] = value;
            to[i + 1] = value;
            to[i + 2] = value;
            to[i + 3] = value;
            to[i + 4] = value;
            to[i + 5] = value;
            to[i + 6] = value;
            to[i + 7] = value;
        }
        __asm__ volatile("" : : : "memory");
    }
}

/* Reads `n` 8-byte words, a multiple of 64, and writes each where it was, `sweeps` times: what leaves
 * a cache is written back. */
TARGET static void NAMED(update)(double *array, long n, long sweeps)
{
    NAMED(vector) *at = (NAMED(vector) *)array;
    long vectors = n / NAMED(PER_VECTOR);
    for (long sweep = 0; sweep < sweeps; sweep++) {
        for (long i = 0; i < vectors; i += 8) {
            NAMED(vector) v0 = at[i], v1 = at[i + 1], v2 = at[i + 2], v3 = at[i + 3];
            NAMED(vector) v4 = at[i + 4], v5 = at[i + 5], v6 = at[i + 6], v7 = at[i + 7];
            KEEP_4(v0, v1, v2, v3);
            KEEP_4(v4, v5, v6, v7);
            at[i] = v0;
            at[i + 1] = v1;
            at[i + 2] = v2;
            at[i + 3] = v3;
            at[i + 4] = v4;
            at[i + 5] = v5;
            at[i + 6] = v6;
            at[i + 7] = v7;
        }
        __asm__ volatile("" : : : "memory");
    }
}

/* a = b + s c over `n` doubles, a multiple of 64. */
TARGET static void NAMED(triad)(double *a, const double *b, const double *c, double s, long n)
{
    NAMED(vector) *to = (NAMED(vector) *)a, factor;
    const NAMED(vector) *left = (const NAMED(vector) *)b, *right = (const NAMED(vector) *)c;
    for (int i = 0; i < NAMED(PER_VECTOR); i++)
        factor[i] = s;
    for (long i = 0; i < n / NAMED(PER_VECTOR); i += 4) {
        to[i] = FMA(factor, right[i], left[i]);
        to[i + 1] = FMA(factor, right[i + 1], left[i + 1]);
        to[i + 2] = FMA(factor, right[i + 2], left[i + 2]);
        to[i + 3] = FMA(factor, right[i + 3], left[i + 3]);
    }
}

/* As the triad, with `fours` times four multiply-adds of every element between its loads and its
 * store: the arithmetic grows, the traffic does not. Eight vectors at a time, whose chains are
 * independent; blocks follow each other without waiting. The values converge to 1. */
TARGET static void NAMED(mixed)(double *a, const double *b, const double *c, long n, long fours)
{
    NAMED(vector) *to = (NAMED(vector) *)a, half;
    const NAMED(vector) *left = (const NAMED(vector) *)b, *right = (const NAMED(vector) *)c;
    for (int i = 0; i < NAMED(PER_VECTOR); i++)
        half[i] = 0.5;
#define MULTIPLY_ADD                                                                               \
    v0 = FMA(v0, half, half);                                                                      \
    v1 = FMA(v1, half, half);                                                                      \
    v2 = FMA(v2, half, half);                                                                      \
    v3 = FMA(v3, half, half);                                                                      \
    v4 = FMA(v4, half, half);                                                                      \
    v5 = FMA(v5, half, half);                                                                      \
    v6 = FMA(v6, half, half);                                                                      \
    v7 = FMA(v7, half, half);                                                                      \
    KEEP_4(v0, v1, v2, v3);                                                                        \
    KEEP_4(v4, v5, v6, v7)
    for (long i = 0; i < n / NAMED(PER_VECTOR); i += 8) {
        NAMED(vector) v0 = FMA(half, right[i], left[i]), v1 = FMA(half, right[i + 1], left[i + 1]);
        NAMED(vector) v2 = FMA(half, right[i + 2], left[i + 2]);
        NAMED(vector) v3 = FMA(half, right[i + 3], left[i + 3]);
        NAMED(vector) v4 = FMA(half, right[i + 4], left[i + 4]);
        NAMED(vector) v5 = FMA(half, right[i + 5], left[i + 5]);
        NAMED(vector) v6 = FMA(half, right[i + 6], left[i + 6]);
        NAMED(vector) v7 = FMA(half, right[i + 7], left[i + 7]);
        for (long k = 0; k < fours; k++) {
            MULTIPLY_ADD;
            MULTIPLY_ADD;
            MULTIPLY_ADD;
            MULTIPLY_ADD;
        }
        to[i] = v0;
        to[i + 1] = v1;
        to[i + 2] = v2;
        to[i + 3] = v3;
        to[i + 4] = v4;
        to[i + 5] = v5;
        to[i + 6] = v6;
        to[i + 7] = v7;
    }
#undef MULTIPLY_ADD
}
