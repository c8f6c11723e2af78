/* What else the machine did: see machine_state.h. */
#define _DEFAULT_SOURCE
#include "machine_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "samples.h"
#include "text.h"

/* Within a quarter of a second a processor counts 25 ticks: a share is then known to about 4 %. */
static const double SHORTEST_WINDOW = 0.25;
/* A whole launch has no other chance: ticks may then be a tenth of the truth. */
static const double SHORTEST_LAUNCH = 0.1;

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

struct usage own_usage(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (struct usage){seconds_of(used.ru_utime) + seconds_of(used.ru_stime), used.ru_nivcsw};
}

struct watch watch_open(const char *cpu_list)
{
    struct watch watch = {0};
    char *own = cpu_list ? NULL : allowed_cpus();
    for (const char *at = cpu_list ? cpu_list : own; *at;) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (last >= watch.size) {
            watch.cpus = memory_resize(watch.cpus, (size_t)last + 1);
            memset(watch.cpus + watch.size, 0, (size_t)(last + 1 - watch.size));
            watch.size = last + 1;
        }
        for (long cpu = first; cpu <= last; cpu++) {
            watch.count += !watch.cpus[cpu];
            watch.cpus[cpu] = 1;
        }
        at = *end == ',' ? end + 1 : end;
    }
    free(own);
    return watch;
}

void watch_close(struct watch *watch)
{
    free(watch->cpus);
    *watch = (struct watch){0};
}

/* Sums over the watched processors of /proc/stat; both NAN where that file cannot be read. */
static void read_busy(const struct watch *watch, double *busy, double *steal)
{
    char *stat = file_read("/proc/stat");
    *busy = *steal = stat ? 0 : NAN;
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    for (const char *line = stat; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        long cpu;
        double user, nice, system, idle, wait, irq, softirq, stolen = 0;
        if (sscanf(line, "cpu%ld %lf %lf %lf %lf %lf %lf %lf %lf", &cpu, &user, &nice, &system,
                   &idle, &wait, &irq, &softirq, &stolen) < 8)
            continue; /* the sum over all processors, interrupts and so on */
        if (cpu >= 0 && cpu < watch->size && watch->cpus[cpu]) {
            *busy += tick * (user + nice + system + irq + softirq);
            *steal += tick * stolen;
        }
    }
    free(stat);
}

void watch_take(struct watch *watch, struct usage usage)
{
    struct snapshot *now = &watch->snapshots[watch->taken++ % POPMODEL_SNAPSHOTS];
    now->when = clock_now();
    now->usage = usage;
    read_busy(watch, &now->busy, &now->steal);
    if (watch->taken == 1)
        watch->first = *now;
}

/* The part of the watched processors' time between two snapshots that others used. */
static double foreign_share(const struct watch *watch, const struct snapshot *old,
                            const struct snapshot *now)
{
    double others = now->busy - old->busy - (now->usage.cpu - old->usage.cpu);
    double share = others / ((now->when - old->when) * (double)watch->count);
    if (share < 0) /* both counts are rounded to ticks */
        return 0;
    return share > 1 ? 1 : share;
}

double watch_whole(const struct watch *watch)
{
    if (watch->taken < 2)
        return NAN;
    const struct snapshot *now = &watch->snapshots[(watch->taken - 1) % POPMODEL_SNAPSHOTS];
    return now->when - watch->first.when < SHORTEST_LAUNCH ? NAN
                                                           : foreign_share(watch, &watch->first, now);
}

struct state watch_state(const struct watch *watch)
{
    struct state state = {.foreign = NAN};
    if (watch->taken < 2)
        return state;
    const struct snapshot *now = &watch->snapshots[(watch->taken - 1) % POPMODEL_SNAPSHOTS];
    const struct snapshot *before = &watch->snapshots[(watch->taken - 2) % POPMODEL_SNAPSHOTS];
    state.involuntary = now->usage.involuntary - before->usage.involuntary;
    state.steal = now->steal - before->steal;

    /* The latest snapshot that is old enough. */
    for (long i = watch->taken - 2; i >= 0 && i > watch->taken - 1 - POPMODEL_SNAPSHOTS; i--) {
        const struct snapshot *old = &watch->snapshots[i % POPMODEL_SNAPSHOTS];
        double wall = now->when - old->when;
        if (wall < SHORTEST_WINDOW)
            continue;
        state.foreign = foreign_share(watch, old, now);
        break;
    }
    return state;
}
