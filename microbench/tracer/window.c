/* A window of time (POPMODEL_TRACE_WINDOW=FROM:TO): only what happens in it is recorded.
 *
 * Seconds since MPI_Init has ended, or, without MPI, since there was something to record. Either
 * can be left out. The clock is looked at where something would be recorded; a process switches by
 * itself, with TRACING records as if it had called MPI_Pcontrol. Parallel regions that begin outside
 * are not recorded either, nor what of them lies inside.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "meta.h"
#include "process.h"

#define LONGEST 1e9 /* s */

_Atomic uint64_t switch_at = NEVER;

static bool given;
static uint64_t from, to; /* ns; `to` is NEVER if there is no end */
static uint64_t origin;
static _Atomic bool begun;

static bool seconds(const char *text, const char *end, uint64_t *value)
{
    char *rest;
    double number = strtod(text, &rest);
    if (rest != end || rest == text || !(number >= 0 && number <= LONGEST))
        return false;
    *value = (uint64_t)(1e9 * number);
    return true;
}

static bool parse(const char *text)
{
    const char *colon = text;
    while (*colon && *colon != ':')
        colon++;
    const char *end = colon;
    while (*end)
        end++;
    from = 0;
    to = NEVER;
    return *colon && (colon == text || seconds(text, colon, &from)) &&
           (colon + 1 == end || seconds(colon + 1, end, &to)) && from < to;
}

static void turn(bool on)
{
    if (on)
        atomic_fetch_and(&watch, ~CLOSED);
    else
        atomic_fetch_or(&watch, CLOSED);
    tracing(on);
}

static void open_window(uint64_t time)
{
    origin = time;
    atomic_store(&begun, from == 0);
    turn(from == 0);
    uint64_t next = from == 0 ? to : from;
    atomic_store(&switch_at, next == NEVER ? NEVER : origin + next);
}

void window_look(void)
{
    uint64_t at = atomic_load(&switch_at);
    if (now() < at || !atomic_compare_exchange_strong(&switch_at, &at, NEVER))
        return;
    bool on = !atomic_exchange(&begun, true);
    turn(on);
    if (on && to != NEVER)
        atomic_store(&switch_at, origin + to);
}

void window_before_init(void)
{
    if (!given)
        return;
    atomic_store(&switch_at, NEVER);
    turn(false);
}

void window_after_init(void)
{
    if (given)
        open_window(now());
}

static void begin(void)
{
    const char *text = getenv("POPMODEL_TRACE_WINDOW");
    if (!text || !*text)
        return;
    given = parse(text);
    if (given)
        open_window(now());
    else
        complain("POPMODEL_TRACE_WINDOW=%s: must be FROM:TO in seconds, such as 2.5:10; recording "
                 "everything",
                 text);
}

__attribute__((constructor)) static void when_loaded(void)
{
    at_start(begin);
}
