/* Batches and the stopping rule: see batch.h. */
#define _POSIX_C_SOURCE 200809L
#include "batch.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "text.h"

/* A batch shorter than this drowns in the clock's ticks and in the cost of starting threads
 * together. */
static const double SHORTEST_BATCH = 20e-6;
static const double SHORTEST_IN_TICKS = 200;
/* All batches together span at least this part of the budget: fifty batches within one millisecond
 * would agree with each other and still be wrong together, because the machine was disturbed, or
 * not, for all of that millisecond. */
static const double SPAN_OF_BUDGET = 0.125;
static const double LONGEST_FOR_SPAN = 500e-6;
/* Finding `inner` and warming up may each use this part of the budget. */
static const double WARM_UP_OF_BUDGET = 0.25;
/* Where only a part of a batch is timed (one call among those that prepare it), the rest takes time
 * too: the fewest batches together may take this part of the budget. */
static const double LONGEST_OF_BUDGET = 0.5;
/* Until this part of the budget is spent, the next batch waits for the cores to be left alone: what
 * is left is enough for batches as they come. */
static const double WAIT_OF_BUDGET = 0.5;
/* Warm is when the median of a round of batches is at least this part of the round's before. */
static const double NO_LONGER_FALLING = 0.95;
enum { ROUND = 5, TRIES = 3, FEWEST = 3 };
/* A construct that costs nothing has no relative precision: the interval is compared with at least
 * this part of the reference time. */
static const double FLOOR_OF_REFERENCE = 0.1;

enum decision { GO_ON, CONVERGED, ENOUGH, SPENT };
static const char *const DECISIONS[] = {NULL, "converged", "batches", "budget"};

static long agreed(const struct plan *plan, long value)
{
    return plan->agree ? plan->agree(plan->agree_with, value) : value;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_interval(double *values, long n, double *half)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
    /* Binomial order statistics in their normal form: positions n/2 -+ 1.96/2 sqrt(n). */
    double reach = 0.98 * sqrt((double)n);
    long low = (long)floor(0.5 * (double)n - reach) - 1, high = (long)ceil(0.5 * (double)n + reach);
    low = low < 0 ? 0 : low;
    high = high > n - 1 ? n - 1 : high;
    *half = 0.5 * (values[high] - values[low]);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

/* Means over a few readings each, because a clock that ticks slowly shows its cost only on average;
 * the median of them, because one interruption, in the mean of all, would exceed the call that the
 * share is taken off. */
double clock_share(void)
{
    enum { GROUPS = 51, READINGS = 50 };
    double means[GROUPS], half;
    for (int k = 0; k < GROUPS; k++) {
        double total = 0;
        for (int i = 0; i < READINGS; i++) {
            double start = clock_now();
            total += clock_now() - start;
        }
        means[k] = total / READINGS;
    }
    return median_interval(means, GROUPS, &half);
}

/* The least time of a few batches: one that was interrupted seems long enough but is not. In *wall,
 * the least that one took with all that is not timed. */
static double fastest(const struct plan *plan, batch_fn work, void *state, long inner, double until,
                      double *wall)
{
    double least = *wall = INFINITY;
    for (int i = 0; i < TRIES; i++) {
        double start = clock_now(), seconds = work(state, inner), took = clock_now() - start;
        if (took < *wall)
            *wall = took;
        /* Threads most often miss each other in a batch that is too short; how long it was, start
         * of the threads included, is known well enough to find a longer one. */
        if (isnan(seconds))
            seconds = took;
        if (seconds < least)
            least = seconds;
        if (agreed(plan, clock_now() > until))
            break;
    }
    return least;
}

/* Operations that make a batch at least `shortest` long. */
static long find_inner(const struct plan *plan, batch_fn work, void *state, double shortest)
{
    double until = clock_now() + WARM_UP_OF_BUDGET * plan->budget;
    double longest = LONGEST_OF_BUDGET * plan->budget / (double)plan->least;
    longest = longest > shortest ? longest : shortest;
    long inner = 1;
    for (;;) {
        double wall, seconds = fastest(plan, work, state, inner, until, &wall);
        long next = inner;
        if (seconds < shortest && inner < LONG_MAX / 16) {
            double factor = seconds > 0 ? 1.2 * shortest / seconds : 10;
            factor = factor > 10 ? 10 : factor;
            if (factor * wall > longest)
                factor = longest / wall;
            if (factor > 1.1)
                next = (long)ceil((double)inner * factor);
        }
        next = agreed(plan, next);
        if (next == inner)
            return inner;
        inner = next;
    }
}

static void warm_up(const struct plan *plan, batch_fn work, batch_fn reference, void *state,
                    long inner)
{
    double until = clock_now() + WARM_UP_OF_BUDGET * plan->budget;
    double before = INFINITY;
    for (;;) {
        double round[ROUND], half;
        int n = 0, late = 0;
        for (int i = 0; i < ROUND && !late; i++) {
            double seconds = work(state, inner);
            if (reference)
                reference(state, inner);
            if (!isnan(seconds))
                round[n++] = seconds;
            late = (int)agreed(plan, clock_now() > until);
        }
        double median = n ? median_interval(round, n, &half) : INFINITY;
        if (agreed(plan, late || median >= NO_LONGER_FALLING * before))
            return;
        before = median;
    }
}

static int is_own(const struct plan *plan, double pace)
{
    return plan->threads == 0 || pace_is_own(plan->paces, plan->threads, pace);
}

/* Of the batches during which the cores were left alone, if there are enough of them. */
static int narrow_enough(const struct plan *plan, const struct batches *all)
{
    double *values = memory_resize(NULL, 2 * (size_t)all->n * sizeof *values);
    double *references = values + all->n, half = INFINITY, scale = 0, floor_of = 0;
    long n = 0;
    for (long i = 0; i < all->n; i++) {
        if (all->pace && !is_own(plan, all->pace[i]))
            continue;
        references[n] = all->reference ? all->reference[i] : 0;
        values[n] = all->seconds[i] - references[n];
        n++;
    }
    if (n >= plan->least) {
        floor_of = FLOOR_OF_REFERENCE * median_interval(references, n, &half);
        scale = fabs(median_interval(values, n, &half));
    }
    free(values);
    return half <= plan->precision * fmax(scale, floor_of);
}

/* The pace of the cores, which it looks at again until they are left alone, or until `late`. */
static double pace_of(const struct plan *plan, double late)
{
    double pace = pace_now(plan->threads, plan->cpus);
    while (!is_own(plan, pace) && clock_now() < late)
        pace = pace_now(plan->threads, plan->cpus);
    return pace;
}

/* One more time at the end of n. */
static void append(double **times, long n, double seconds)
{
    if (n == 0 || (n >= 256 && (n & (n - 1)) == 0))
        *times = memory_resize(*times, (size_t)(n < 256 ? 256 : 2 * n) * sizeof **times);
    (*times)[n] = seconds;
}

struct batches measure(const struct plan *plan, batch_fn work, batch_fn reference, void *state)
{
    double start = clock_now(), shortest = SHORTEST_BATCH;
    double in_ticks = SHORTEST_IN_TICKS * clock_tick();
    double in_span = SPAN_OF_BUDGET * plan->budget / (double)plan->most;
    shortest = in_ticks > shortest ? in_ticks : shortest;
    in_span = in_span > LONGEST_FOR_SPAN ? LONGEST_FOR_SPAN : in_span;
    shortest = in_span > shortest ? in_span : shortest;

    struct batches all = {.inner = plan->inner > 0 ? plan->inner
                                                   : find_inner(plan, work, state, shortest)};
    warm_up(plan, work, reference, state, all.inner);

    long check = plan->least, turn = 0;
    double wait = start + WAIT_OF_BUDGET * plan->budget, pace = pace_of(plan, wait);
    for (enum decision decision = GO_ON; decision == GO_ON; turn++) {
        double with = 0, without = 0, before = pace;
        if (reference && turn % 2)
            without = reference(state, all.inner);
        with = work(state, all.inner);
        if (reference && turn % 2 == 0)
            without = reference(state, all.inner);
        pace = pace_now(plan->threads, plan->cpus);

        if (isnan(with) || isnan(without)) {
            all.rejected++;
        } else {
            append(&all.seconds, all.n, with / (double)all.inner);
            if (reference)
                append(&all.reference, all.n, without / (double)all.inner);
            if (plan->threads)
                append(&all.pace, all.n, fmax(before, pace));
            all.n++;
        }

        double spent = clock_now() - start;
        if (all.n >= check && all.n > 0) {
            if (narrow_enough(plan, &all))
                decision = CONVERGED;
            check = all.n + (all.n / 8 > 8 ? all.n / 8 : 8);
        }
        if (decision == GO_ON && all.n >= plan->most)
            decision = ENOUGH;
        /* A median needs a few batches; but a job that takes far too long ends with what it has. */
        if (decision == GO_ON && spent >= plan->budget &&
            (all.n >= FEWEST || spent >= 4 * plan->budget))
            decision = SPENT;
        decision = (enum decision)agreed(plan, decision);
        all.stopped = DECISIONS[decision];
        if (decision == GO_ON && !is_own(plan, pace))
            pace = pace_of(plan, wait);
    }
    return all;
}

void batches_free(struct batches *batches)
{
    free(batches->seconds);
    free(batches->reference);
    free(batches->pace);
    *batches = (struct batches){0};
}
