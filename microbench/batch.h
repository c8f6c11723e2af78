/* How long a batch is, how many batches there are, and when to stop.
 *
 * A *batch* does `inner` operations between two readings of the clock; what is kept is every
 * batch's time per operation. measure() finds `inner` so that the clock and its reading are small
 * against a batch, warms up until the times no longer fall, and takes batches until the 95 %
 * interval of the median is narrow enough, there are enough of them, or the time is spent. Where a
 * reference is given (the same work without what is measured), batches of both alternate and change
 * places from pair to pair, so that a slow drift of the machine cancels in their difference.
 *
 * Right before and after a batch, or a pair of them, the cores are asked whether they are left to
 * themselves (pace.h). While they are not, it waits for a part of the budget; what is taken all the
 * same is kept with its pace, but does not decide when to stop. */
#ifndef POPMODEL_BATCH_H
#define POPMODEL_BATCH_H

#include "pace.h"

/* Does `inner` operations and returns the seconds they took; NAN if the batch is not worth keeping
 * (threads that did not overlap, for example): it is then counted as rejected and taken again. */
typedef double (*batch_fn)(void *state, long inner);

struct plan {
    double budget;    /* seconds for one job, finding `inner` and warming up included */
    double precision; /* stop when half the median's 95 % interval is below this part of it */
    long least, most; /* batches */
    long inner;       /* operations in a batch; 0: as many as the clock needs */
    /* Rank 0's value at every participant of a parallel measurement, called by all of them outside
     * the timed part; NULL: alone. Only rank 0's times decide, the others' are ignored. */
    long (*agree)(void *with, long value);
    void *agree_with;
    long threads;        /* whose cores are looked at; 0: nobody's */
    const int *cpus;     /* where they measure, if not where they are anyway */
    struct paces *paces; /* what the jobs of a launch know of each other's, or NULL */
};

struct batches {
    double *seconds;     /* n times per operation */
    double *reference;   /* n times per operation, or NULL */
    double *pace;        /* n times of a turn, the longer of before and after; NULL: not looked at */
    long n, inner;       /* batches; operations in each */
    long rejected;       /* batches thrown away */
    const char *stopped; /* "converged", "batches" or "budget" */
};

struct batches measure(const struct plan *, batch_fn work, batch_fn reference, void *state);

void batches_free(struct batches *);

/* What a time taken around a single call contains of the clock itself, in seconds. */
double clock_share(void);

/* Half the width of the 95 % interval of the median (order statistics, so any distribution will do)
 * in *half, and the median itself; needs n >= 1, sorts `values`. */
double median_interval(double *values, long n, double *half);

#endif
