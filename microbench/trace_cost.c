/* What recording a call costs on this machine: popmodel-trace-cost prints ns per record.
 *
 * The loop does what the tracer does around a call of MPI (tracer/call.h), with two records, in a file
 * of the directory that POPMODEL_TRACE_DIR names. What the tracer has to remember of requests comes
 * on top.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tracer/process.h"

#define CALLS_AT_ONCE 2000 /* 125 KiB of records: what a thread that records much has near */
#define BATCHES 50

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

int main(void)
{
    struct thread *t = process_start() ? thread_here() : NULL;
    if (!t || t->stopped)
        return 1;
    double each[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t begin = now();
        for (int i = 0; i < CALLS_AT_ONCE; i++) {
            t = thread_here();
            room(t, 16);
            put(t, now(), ENTER, 1, 1, 0, 0);
            room(t, 8);
            put(t, now(), LEAVE, 1, 0, 0, 0);
        }
        each[batch] = (double)(now() - begin) / (2.0 * CALLS_AT_ONCE);
    }
    process_end("exit");
    qsort(each, BATCHES, sizeof each[0], compare);
    return printf("%.2f\n", each[BATCHES / 10]) < 0; /* the fast end: what is slower was disturbed */
}
