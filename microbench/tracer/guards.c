/* Sums of locks: see guards.h. */
#define _GNU_SOURCE
#include "guards.h"

#include <stdlib.h>
#include <string.h>

#include "meta.h"

/* Of so many at first every one is sampled, then one in 16 on average: at random, since programs
 * take their locks in patterns. */
#define FEW 64
#define GAP 31u

/* Sums are put at least so often, so that windows of time can be analysed. */
#define PERIOD 50000000u /* ns */

static uint32_t next_gap(struct guards *guards)
{
    uint32_t x = guards->random ? guards->random : 2463534242u; /* xorshift */
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    guards->random = x;
    return x & GAP;
}

void guard_sample(struct thread *t, enum guard which, int64_t lock)
{
    struct sums *sums = &t->guards.of[which];
    if (sums->since) { /* another one is still held */
        sums->left = 0;
        return;
    }
    uint64_t time = now();
    if (sums->taken > FEW && time - t->guards.put > PERIOD) {
        room(t, MOST_SUMS);
        time = now();
        guards_put(t, time);
    }
    sums->lock = lock;
    sums->stands_for = sums->taken - sums->sampled;
    sums->sampled = sums->taken;
    sums->left = sums->taken < FEW ? 0 : next_gap(&t->guards);
    sums->since = time;
}

void guard_released(struct sums *sums)
{
    sums->held += sums->stands_for * (now() - sums->since);
    sums->since = 0;
}

void guard_waited(struct thread *t, enum guard which, int64_t lock, uint64_t since,
                  uint64_t long_enough)
{
    static const enum construct constructs[] = {
        [LOCKS] = LOCK_WAIT, [CRITICALS] = CRITICAL_WAIT, [ATOMICS] = CRITICAL_WAIT};
    struct sums *sums = &t->guards.of[which];
    uint64_t time = now(), waited = time - since;
    if (waited >= long_enough)
        sums->waits++;
    if (LIKELY(waited < LONG_WAIT)) {
        sums->waited += waited;
    } else {
        since = room_at(t, 8, since);
        construct_put(t, since, OMP_ENTER, constructs[which], lock);
        construct_put(t, since > time ? since : time, OMP_LEAVE, constructs[which], lock);
    }
    guard_taken(t, which, lock);
}

void guards_put(struct thread *t, uint64_t time)
{
    t->guards.put = time;
    for (enum guard which = LOCKS; which < GUARDS; which++) {
        struct sums *sums = &t->guards.of[which];
        uint64_t count = sums->taken - sums->told;
        if (count == 0 && sums->held == 0) /* one is given away after the sums were put */
            continue;
        uint32_t waits = sums->waits < UINT32_MAX ? (uint32_t)sums->waits : UINT32_MAX;
        put(t, time, GUARDED, which, waits, (int64_t)count, (int64_t)sums->waited);
        put(t, time, HELD, which, 0, (int64_t)sums->held, 0);
        sums->told = sums->taken;
        sums->waits = sums->waited = sums->held = 0;
    }
}

static void begin(void)
{
    put_rest = guards_put;
    const char *given = getenv("POPMODEL_TRACE_LOCKS");
    if (!given || !*given || strcmp(given, "sum") == 0)
        return;
    if (strcmp(given, "each") == 0)
        atomic_fetch_or(&watch, EACH_GUARD);
    else
        complain("POPMODEL_TRACE_LOCKS=%s: must be sum or each; using sum", given);
}

__attribute__((constructor)) static void when_loaded(void)
{
    at_start(begin);
}
