/* Whether the cores that measure are left to themselves.
 *
 * Another hardware thread of a core takes a part of it, and where it belongs to another machine of
 * the same host, no counter of this one tells. But an empty counted loop tells: one turn is a cycle
 * on a core of one's own, and 1.6 to 2 cycles while the other thread has work. No placement of
 * memory, of ranks or of threads does that, and a clock that follows the load changes less. */
#ifndef POPMODEL_PACE_H
#define POPMODEL_PACE_H

/* Seconds of a turn on the slowest of the cores of `threads` OpenMP threads, all of them looking at
 * the same time for some microseconds; 0 without threads. cpus: where they are; NULL for where they
 * are anyway. */
double pace_now(long threads, const int *cpus);

/* The best paces of teams, by their number of threads: with more cores busy a clock may be slower. */
struct paces {
    struct best {
        long threads;
        double seconds;
    } *best;
    long count;
};

/* Whether a team was left to itself, as far as the best paces so far tell, its own and those of
 * fewer threads; takes note of this one. Without `paces` nothing is known: it was. */
int pace_is_own(struct paces *, long threads, double seconds);

void paces_free(struct paces *);

#endif
