/* Which processors this process may use, how far they are from each other, and binding a thread to
 * one. Linux. */
#ifndef POPMODEL_CPUS_H
#define POPMODEL_CPUS_H

#include <stddef.h>

struct cpus {
    int *numbers; /* as the kernel counts them, ascending */
    int count;
};

struct cpus cpus_read(void);
void cpus_free(struct cpus *);

enum { MOST_DOMAINS = 1024 };

/* Processors of a memory domain, one of each core; domains count from 0 among those of which this
 * process may use a processor. None if there are not as many. */
struct cpus cpus_of_domain(long domain);

/* How far a message between two processors goes, by what they share: same core, a cache (by level),
 * the memory domain, the socket, nothing. Smaller is nearer. */
enum distance { SAME_CORE, SAME_L2 = 2, SAME_L3, SAME_L4, SAME_DOMAIN, SAME_SOCKET, OTHER_SOCKET };

enum distance cpus_distance(int a, int b);

/* Two processors of one core. Returns 0, or -1 if there are none. */
int cpus_on_one_core(const struct cpus *, int pair[2]);

/* The first processor and the nearest one of another core, or the farthest one. Returns 0; -1 if
 * all are of one core; 1 if `far` is set and all other cores are equally near. */
int cpus_on_two_cores(const struct cpus *, int far, int pair[2]);

/* Binds the calling thread to a processor; unpin() gives it back those it had. */
struct pinned {
    void *before; /* NULL if nothing was changed */
    size_t size;
};

struct pinned pin_to(int cpu);
void unpin(struct pinned);

#endif
