/* Processors: see cpus.h. What the kernel says in /sys/devices/system/cpu. */
#define _GNU_SOURCE
#include "cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"
#include "text.h"

enum { MOST_CPUS = 1 << 16, MOST_CACHES = 16 };

/* The folder of the memory domains; another one where domains are tried out that are not there. */
#ifndef DOMAINS
#define DOMAINS "/sys/devices/system/node"
#endif

/* Goes through a list such as "0-3,8": the next range in *first, *last. Returns where to go on,
 * NULL at the end. */
static const char *next_range(const char *list, long *first, long *last)
{
    char *end;
    if (!list || !*list || *list == '\n')
        return NULL;
    *first = *last = strtol(list, &end, 10);
    if (end == list)
        return NULL;
    if (*end == '-')
        *last = strtol(end + 1, &end, 10);
    return *end == ',' ? end + 1 : end;
}

static int list_has(const char *list, long cpu)
{
    long first, last;
    while ((list = next_range(list, &first, &last)))
        if (first <= cpu && cpu <= last)
            return 1;
    return 0;
}

static void add_cpu(struct cpus *cpus, int cpu)
{
    cpus->numbers = memory_resize(cpus->numbers, (size_t)(cpus->count + 1) * sizeof *cpus->numbers);
    cpus->numbers[cpus->count++] = cpu;
}

struct cpus cpus_read(void)
{
    struct cpus cpus = {0};
    char *list = allowed_cpus();
    long first, last;
    for (const char *at = list; (at = next_range(at, &first, &last));)
        for (long cpu = first; cpu <= last; cpu++)
            add_cpu(&cpus, (int)cpu);
    free(list);
    return cpus;
}

void cpus_free(struct cpus *cpus)
{
    free(cpus->numbers);
    *cpus = (struct cpus){0};
}

/* A file about a processor; NULL if the kernel does not tell. */
static char *about(int cpu, const char *what)
{
    struct text path = {0};
    text_add(&path, "/sys/devices/system/cpu/cpu%d/%s", cpu, what);
    char *content = file_read(path.at);
    text_free(&path);
    return content;
}

static int same_list(int cpu, const char *what, int other)
{
    char *list = about(cpu, what);
    int has = list_has(list, other);
    free(list);
    return has;
}

/* The lowest level of a cache that both use, 0 if none. */
static long shared_cache(int a, int b)
{
    long lowest = 0;
    for (int index = 0; index < MOST_CACHES; index++) {
        char what[64];
        snprintf(what, sizeof what, "cache/index%d/level", index);
        char *level = about(a, what);
        if (!level)
            break;
        snprintf(what, sizeof what, "cache/index%d/shared_cpu_list", index);
        long number = strtol(level, NULL, 10);
        if (same_list(a, what, b) && (lowest == 0 || number < lowest))
            lowest = number;
        free(level);
    }
    return lowest;
}

/* Processors of a memory domain by the kernel's number; NULL if there is none. */
static char *domain_list(int number)
{
    struct text path = {0};
    text_add(&path, DOMAINS "/node%d/cpulist", number);
    char *list = file_read(path.at);
    text_free(&path);
    return list;
}

static int same_domain(int a, int b)
{
    for (int domain = 0; domain < MOST_DOMAINS; domain++) {
        char *list = domain_list(domain);
        int has_a = list_has(list, a), has_b = list_has(list, b);
        free(list);
        if (has_a || has_b)
            return has_a && has_b;
    }
    return 0;
}

static int same_socket(int a, int b)
{
    char *first = about(a, "topology/physical_package_id"),
         *second = about(b, "topology/physical_package_id");
    int same = first && second && strcmp(first, second) == 0;
    free(first);
    free(second);
    return same;
}

/* Whether a processor is another hardware thread of a core of which one is there already. */
static int has_sibling(const struct cpus *cpus, int cpu)
{
    for (int i = 0; i < cpus->count; i++)
        if (same_list(cpus->numbers[i], "topology/thread_siblings_list", cpu))
            return 1;
    return 0;
}

struct cpus cpus_of_domain(long domain)
{
    struct cpus usable = cpus_read(), found = {0};
    for (int number = 0; number < MOST_DOMAINS && domain >= 0; number++) {
        char *list = domain_list(number);
        for (int i = 0; i < usable.count; i++)
            if (list_has(list, usable.numbers[i]) && !has_sibling(&found, usable.numbers[i]))
                add_cpu(&found, usable.numbers[i]);
        free(list);
        if (found.count && domain-- > 0)
            cpus_free(&found);
    }
    cpus_free(&usable);
    return found;
}

enum distance cpus_distance(int a, int b)
{
    if (a == b || same_list(a, "topology/thread_siblings_list", b))
        return SAME_CORE;
    long level = shared_cache(a, b);
    if (level >= 2 && level <= 4)
        return level == 2 ? SAME_L2 : level == 3 ? SAME_L3 : SAME_L4;
    if (!same_socket(a, b))
        return OTHER_SOCKET;
    return same_domain(a, b) ? SAME_DOMAIN : SAME_SOCKET;
}

int cpus_on_one_core(const struct cpus *cpus, int pair[2])
{
    for (int i = 0; i < cpus->count; i++)
        for (int j = i + 1; j < cpus->count; j++)
            if (same_list(cpus->numbers[i], "topology/thread_siblings_list", cpus->numbers[j])) {
                pair[0] = cpus->numbers[i];
                pair[1] = cpus->numbers[j];
                return 0;
            }
    return -1;
}

int cpus_on_two_cores(const struct cpus *cpus, int far, int pair[2])
{
    int nearest = 0, farthest = 0;
    enum distance least = OTHER_SOCKET, most = SAME_CORE;
    for (int i = 1; i < cpus->count; i++) {
        enum distance distance = cpus_distance(cpus->numbers[0], cpus->numbers[i]);
        if (distance == SAME_CORE)
            continue;
        if (!nearest || distance < least) {
            least = distance;
            nearest = i;
        }
        if (!farthest || distance > most) {
            most = distance;
            farthest = i;
        }
    }
    if (!nearest)
        return -1;
    if (far && most == least)
        return 1;
    pair[0] = cpus->numbers[0];
    pair[1] = cpus->numbers[far ? farthest : nearest];
    return 0;
}

struct pinned pin_to(int cpu)
{
    struct pinned pinned = {.size = CPU_ALLOC_SIZE(MOST_CPUS)};
    cpu_set_t *before = memory_resize(NULL, pinned.size), *one = memory_resize(NULL, pinned.size);
    CPU_ZERO_S(pinned.size, one);
    CPU_SET_S((size_t)cpu, pinned.size, one);
    if (sched_getaffinity(0, pinned.size, before) == 0 &&
        sched_setaffinity(0, pinned.size, one) == 0)
        pinned.before = before;
    else
        free(before);
    free(one);
    return pinned;
}

void unpin(struct pinned pinned)
{
    if (!pinned.before)
        return;
    sched_setaffinity(0, pinned.size, pinned.before);
    free(pinned.before);
}
