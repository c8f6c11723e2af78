/* Vector loops of the widest instruction set that this processor has and the compiler knows. */
#ifndef POPMODEL_VECTORS_H
#define POPMODEL_VECTORS_H

enum { FMA_CHAINS = 12 };
enum { GRAIN = 64 }; /* doubles: array lengths are multiples of this */

struct vectors {
    const char *instructions;
    long doubles; /* in a vector */
    /* FMA_CHAINS multiply-adds of vectors, `repeats` times */
    void (*fma)(long repeats);
    /* `sweeps` times over `n` doubles that start on a line */
    void (*load)(const double *array, long n, long sweeps);
    void (*store)(double *array, long n, long sweeps);
    void (*update)(double *array, long n, long sweeps);
    /* a = b + s c, once */
    void (*triad)(double *a, const double *b, const double *c, double s, long n);
    /* a = b + c / 2, and `fours` times 4 multiply-adds of every element before it is stored */
    void (*mixed)(double *a, const double *b, const double *c, long n, long fours);
};

struct vectors widest_vectors(void);

#endif
