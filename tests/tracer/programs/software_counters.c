/* Gives the kernel's counters of time and page faults where the processor's are asked for, which
 * few machines for tests have.
 * Loaded before the tracer.
 *
 * COUNTERS_ERROR: the error that asking for them gives, after COUNTERS_GIVEN were given. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>

long syscall(long number, ...)
{
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    long values[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        values[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_perf_event_open) {
        static _Atomic int given;
        const char *error = getenv("COUNTERS_ERROR"), *most = getenv("COUNTERS_GIVEN");
        if (error && given++ >= (most ? atoi(most) : 0)) {
            errno = atoi(error);
            return -1;
        }
        struct perf_event_attr *wanted = (struct perf_event_attr *)values[0];
        wanted->type = PERF_TYPE_SOFTWARE;
        wanted->config = wanted->config == PERF_COUNT_HW_INSTRUCTIONS ? PERF_COUNT_SW_TASK_CLOCK
                                                                       : PERF_COUNT_SW_PAGE_FAULTS;
    }
    return next(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}
