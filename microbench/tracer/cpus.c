/* Processors of threads: see cpus.h.
 *
 * Where there are more threads than processors, the time of a thread holds what it waited for the
 * others. The kernel counts that (schedstat, in all kernels of distributions); two numbers at the
 * begin and the end of each thread tell it, and what its computing holds of it where that ends.
 * Starting and stopping MPI is left out, as it is where
 * the run is analysed: the launcher and its helpers are busy then.
 */
#define _GNU_SOURCE
#include "cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

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

#define MOST_TOLD 8 /* of a thread */

void cpus_tell(struct thread *t)
{
    cpu_set_t set[MOST_CPUS / CPU_SETSIZE];
    CPU_ZERO_S(sizeof set, set);
    if (sched_getaffinity(t->id, sizeof set, set) != 0)
        return;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < sizeof set; i++)
        hash = (hash ^ ((const unsigned char *)set)[i]) * 1099511628211u;
    if (hash == t->cpus || t->cpus_told++ >= MOST_TOLD)
        return;
    t->cpus = hash;
    struct line line;
    line_begin(&line, "cpus");
    line_number(&line, "thread", t->number);
    line_key(&line, "cpus");
    put_ranges(&line, set, sizeof set);
    line_end(&line);
}

static uint64_t cpu_time(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* ns on a processor, and waiting for one. */
static bool read_usage(pid_t id, uint64_t usage[2])
{
    char path[64], text[96];
    (void)cpu_time(); /* asking for it has the kernel count up to now, not to its last tick */
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
    t->look_at = UINT64_MAX;
    if (!t->has_usage || process.summing)
        return;
    t->waited = t->usage[1];
    t->used = cpu_time();
    t->looked = now();
    t->look_at = t->looked + LOOK_EVERY;
}

uint64_t delay_look(struct thread *t, uint64_t time, enum look what)
{
    uint64_t used = cpu_time(), back = now();
    if (what == IN_COMPUTING && back - time >= NOTEWORTHY)
        time = back; /* the kernel took the processor away as it was asked, not a little later */
    uint64_t passed = time - t->looked;
    uint64_t off = passed > used - t->used ? passed - (used - t->used) : 0;
    t->looked = time;
    t->look_at = time + LOOK_EVERY;
    t->used = used;
    bool is_first = t->offset == 0 && t->next == t->begun; /* that was before the trace */
    if (LIKELY(what == IN_CALL || off < NOTEWORTHY || is_first))
        return time;
    uint64_t usage[2];
    int kept = errno;
    if (read_usage(t->id, usage)) {
        /* The kernel's number holds what was waited in calls, too, which is not asked for then. */
        uint64_t waited = usage[1] - t->waited;
        t->waited = usage[1];
        if (waited > off)
            waited = off;
        if (waited >= NOTEWORTHY)
            put(t, time, DELAYED, 0, what == IN_TEAM, (int64_t)waited, 0);
    }
    errno = kept;
    return time;
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
