/* Kinds of calls that are left out: by the user's wish (POPMODEL_TRACE_LEAVE_OUT), or because a thread
 * makes more records per second than it may (POPMODEL_TRACE_MAX_RATE).
 *
 * Only what no message, no region and no later record depends on can be left out; its time is the
 * program's own then, which a LEFT_OUT record says. The rate is looked at when a window of a file is
 * full: then the kind that most of its records are of is left out from there on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"
#include "process.h"

_Atomic unsigned left_out;
static double most_per_second; /* 0: no limit */

static const char *const names[LEFT_KINDS] = {
    [LEFT_TESTS] = "tests", [LEFT_CHUNKS] = "chunks", [LEFT_SINGLES] = "singles",
    [LEFT_RMA] = "rma",     [LEFT_IO] = "io"};

enum {
    OF_message,
    OF_probe = OF_message,
    OF_completion = OF_message,
    OF_collective = OF_message,
    OF_icollective = OF_message,
    OF_neighbour = OF_message,
    OF_process = OF_message,
    OF_communicator = OF_message,
    OF_buffer = OF_message,
    OF_persistent = OF_message,
    OF_rma = LEFT_RMA,
    OF_io = LEFT_IO
};
#define OF(name, number, type, value, family) [number] = OF_##family,
static const unsigned char of_call[] = {POPMODEL_CALLS(OF)};

bool call_left_out(int call)
{
    enum left which = of_call[call];
    return which && is_left_out(which);
}

static enum left kind_of(const struct record *record)
{
    if (record->kind == OMP_ENTER)
        return record->call == SCHEDULING ? LEFT_CHUNKS : record->call == SINGLE ? LEFT_SINGLES : 0;
    if (record->kind == ENTER)
        return of_call[record->call];
    if (record->kind != LEAVE || record->a)
        return 0;
    switch (record->call) { /* they found nothing */
    case CALL_Test:
    case CALL_Testall:
    case CALL_Testany:
    case CALL_Testsome:
    case CALL_Iprobe:
    case CALL_Improbe:
    case CALL_Request_get_status:
    case CALL_Win_test:
    case CALL_Parrived:
        return LEFT_TESTS;
    default:
        return 0;
    }
}

static void leave_out(enum left which)
{
    atomic_fetch_or(&left_out, 1u << which);
    atomic_fetch_or(&watch, LEAVING);
}

int filter_look(const struct record *from, const struct record *to, uint64_t ns)
{
    if (most_per_second == 0 || (double)(to - from) * 1e9 <= most_per_second * (double)ns)
        return 0;
    size_t counts[LEFT_KINDS] = {0};
    for (const struct record *record = from; record < to; record++)
        counts[kind_of(record)]++;
    enum left most = LEFT_TESTS;
    for (enum left which = LEFT_TESTS; which < LEFT_KINDS; which++)
        if (counts[which] > counts[most])
            most = which;
    /* A call is two records, of which one is counted. */
    if (counts[most] < (size_t)(to - from) / 8) {
        note("intervals above --max-rate whose records are of kinds that are always recorded");
        return 0;
    }
    leave_out(most);
    return most;
}

static void parse_kinds(const char *given)
{
    char *kinds = strdup(given), *rest = NULL;
    for (char *one = kinds ? strtok_r(kinds, ",", &rest) : NULL; one;
         one = strtok_r(NULL, ",", &rest)) {
        enum left which = LEFT_TESTS;
        while (which < LEFT_KINDS && strcmp(one, names[which]) != 0)
            which++;
        if (which < LEFT_KINDS)
            leave_out(which);
        else
            complain("POPMODEL_TRACE_LEAVE_OUT=%s: must be a list of tests, chunks, singles, rma, io; "
                     "ignoring %s",
                     given, one);
    }
    free(kinds);
}

static void begin(void)
{
    const char *kinds = getenv("POPMODEL_TRACE_LEAVE_OUT");
    const char *rate = getenv("POPMODEL_TRACE_MAX_RATE");
    if (kinds && *kinds)
        parse_kinds(kinds);
    if (rate && *rate) {
        char *rest;
        double number = strtod(rate, &rest);
        if (*rest == '\0' && number >= 1 && number <= 1e12)
            most_per_second = number;
        else
            complain("POPMODEL_TRACE_MAX_RATE=%s: must be a number of records per second; using no "
                     "limit",
                     rate);
    }
    struct thread *t = atomic_load(&left_out) ? thread_here() : NULL;
    for (enum left which = LEFT_TESTS; t && which < LEFT_KINDS; which++)
        if (is_left_out(which)) {
            room(t, 1);
            put(t, now(), LEFT_OUT, which, 0, 0, 0);
        }
}

__attribute__((constructor)) static void when_loaded(void)
{
    at_start(begin);
}
