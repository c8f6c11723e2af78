/* What the ways to notice OpenMP have in common: see openmp.h. */
#define _GNU_SOURCE
#include "openmp.h"

#include <stdlib.h>
#include <string.h>

#include "meta.h"

__thread struct openmp openmp __attribute__((tls_model("initial-exec")));

static const char *const names[] = {
    [BY_CHOICE] = "auto", [BY_OMPT] = "ompt", [BY_GOMP] = "gomp", [BY_NOTHING] = "off"};

enum openmp_how openmp_wanted(void)
{
    const char *given = getenv("POPMODEL_TRACE_OPENMP");
    if (!given || !*given)
        return BY_CHOICE;
    for (enum openmp_how how = BY_CHOICE; how <= BY_NOTHING; how++)
        if (strcmp(given, names[how]) == 0)
            return how;
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (process_wanted() && !atomic_flag_test_and_set(&told))
        complain("POPMODEL_TRACE_OPENMP=%s: must be auto, ompt, gomp or off; using auto",
                 given);
    return BY_CHOICE;
}

void openmp_tell(enum openmp_how how, const char *runtime)
{
    static atomic_flag told[] = {[BY_CHOICE] = ATOMIC_FLAG_INIT,
                                 [BY_OMPT] = ATOMIC_FLAG_INIT,
                                 [BY_GOMP] = ATOMIC_FLAG_INIT,
                                 [BY_NOTHING] = ATOMIC_FLAG_INIT};
    if (atomic_flag_test_and_set(&told[how]))
        return;
    struct line line;
    line_begin(&line, "openmp");
    line_text(&line, "how", how == BY_NOTHING ? "none" : names[how]);
    line_text(&line, "runtime", runtime);
    line_end(&line);
}

uint64_t next_region(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

uint64_t next_task(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static void tell_none(void)
{
    if (openmp_wanted() == BY_NOTHING)
        openmp_tell(BY_NOTHING, NULL);
}

__attribute__((constructor)) static void when_loaded(void)
{
    at_start(tell_none);
}
