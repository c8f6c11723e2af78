/* Regions of a program's own in its trace (`popmodel trace`):
 *
 *     #include "popmodel.h"
 *
 *     popmodel_begin("solver");
 *     ...
 *     popmodel_end("solver");
 *
 *     popmodel_trace_off();          // nothing is recorded from here ...
 *     popmodel_trace_on();           // ... to here, on all threads of this process
 *
 * Regions may lie inside each other or inside themselves, and may cross; each ends on the thread
 * that began it.
 *
 * Needs no library to link with: while the program is not traced, each of these is a comparison
 * with null. For C and C++, with compilers that know weak symbols (GCC, Clang, Intel, NVIDIA,
 * Cray).
 */
#ifndef POPMODEL_H
#define POPMODEL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Found in the library, which is loaded before the program, or null. Code that is not
 * position-independent would be linked with null for good, were it not told to look in the table of
 * what is found when the program starts (the GOT): by an attribute for GCC, by hand for Clang. */
#if defined(__x86_64__) && !defined(__PIC__) && defined(__clang__)
#define POPMODEL_FIND(name, type) \
    type popmodel_found; \
    __asm__(".weak " #name "\n\tmovq " #name "@GOTPCREL(%%rip), %0" : "=r"(popmodel_found))
#define POPMODEL_WEAK __attribute__((weak))
#else
#define POPMODEL_FIND(name, type) type popmodel_found = name
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 6
#define POPMODEL_WEAK __attribute__((weak, noplt))
#else
#define POPMODEL_WEAK __attribute__((weak))
#endif
#endif

typedef void popmodel_name_function(const char *);
typedef void popmodel_switch_function(int);

extern POPMODEL_WEAK popmodel_name_function popmodel_region_begin, popmodel_region_end;
extern POPMODEL_WEAK popmodel_switch_function popmodel_tracing;

static inline void popmodel_begin(const char *name)
{
    POPMODEL_FIND(popmodel_region_begin, popmodel_name_function *);
    if (popmodel_found)
        popmodel_found(name);
}

static inline void popmodel_end(const char *name)
{
    POPMODEL_FIND(popmodel_region_end, popmodel_name_function *);
    if (popmodel_found)
        popmodel_found(name);
}

static inline void popmodel_trace_on(void)
{
    POPMODEL_FIND(popmodel_tracing, popmodel_switch_function *);
    if (popmodel_found)
        popmodel_found(1);
}

static inline void popmodel_trace_off(void)
{
    POPMODEL_FIND(popmodel_tracing, popmodel_switch_function *);
    if (popmodel_found)
        popmodel_found(0);
}

#ifdef __cplusplus
}
#endif

#endif
