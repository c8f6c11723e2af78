/* Processors of threads: see cpus.h.
 *
 * Where there are more threads than processors, the time of a thread holds what it waited for the
 * others. The kernel counts that (schedstat, in all kernels of distributions); two numbers at the
 * begin and the end of each thread tell it. Starting and stopping MPI is left out, as it is where
 * the run is analysed: the launcher and its helpers are busy then.
 */
#define _GNU_SOURCE
#include "cpus.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define MOST_CPUS 8192 /* of a machine */

/* As "0-3,8": the processors of a set. */
static void put_ranges(struct line *line, const cpu_set_t *set, size_t size)
{
    char text[32];
    const char *between = "";
    line_raw(line, "\"");
    for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, size, set))
            continue;
        int last = cpu;
        while (last + 1 < MOST_CPUS && CPU_ISSET_S((size_t)last + 1, size, set))
            last++;
        snprintf(text, sizeof text, last > cpu ? "%s%d-%d" : "%s%d", between, cpu, last);
        line_raw(line, text);
        between = ",";
        cpu = last;
    }
    line_raw(line, "\"");
}

void line_cpus(struct line *line)
{
    cpu_set_t set[MOST_CPUS / CPU_SETSIZE];
    CPU_ZERO_S(sizeof set, set);
    line_key(line, "cpus");
    if (sched_getaffinity(0, sizeof set, set) == 0)
        put_ranges(line, set, sizeof set);
    else
        line_raw(line, "null");
}

/* ns on a processor, and waiting for one. */
static bool read_usage(pid_t id, uint64_t usage[2])
{
    char path[64], text[96];
    struct timespec used; /* asking for it has the kernel count up to now, not to its last tick */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)id);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return sscanf(text, "%" SCNu64 " %" SCNu64, &usage[0], &usage[1]) == 2;
}

void usage_begin(struct thread *t)
{
    t->has_usage = read_usage(t->id, t->usage);
}

void usage_tell(const struct thread *t)
{
    uint64_t usage[2];
    if (!t->has_usage || !read_usage(t->id, usage))
        return;
    struct line line;
    line_begin(&line, "usage");
    line_number(&line, "thread", t->number);
    line_number(&line, "used", (int64_t)(usage[0] - t->usage[0]));
    line_number(&line, "waited", (int64_t)(usage[1] - t->usage[1]));
    line_end(&line);
}

void usage_end(struct thread *t)
{
    usage_tell(t);
    t->has_usage = false;
}
