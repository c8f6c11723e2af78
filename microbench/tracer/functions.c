/* Functions of parallel regions and tasks: where they are, for the names and lines that are looked
 * up after the run.
 *
 * A table that only grows: known ones are found without a lock, on every region and task.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "meta.h"
#include "openmp.h"

#define SLOTS (1u << 14)
#define MOST_FUNCTIONS (SLOTS / 2) /* half full, searches stay short */

static const void *_Atomic table[SLOTS]; /* the number of a function is its slot + 1 */
static unsigned count;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

/* Path of what holds the address: the linker has none for the program itself, and for a library the
 * one that was asked for, which may be relative to a folder that the program has left. */
static void find_module(const char *name, char path[PATH_MAX])
{
    if (!name || !*name) {
        ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
        path[length > 0 ? length : 0] = '\0';
    } else if (!realpath(name, path)) {
        snprintf(path, PATH_MAX, "%s", name);
    }
}

static void tell(const void *address)
{
    char text[32], path[PATH_MAX] = "";
    Dl_info info = {0};
    struct link_map *map = NULL;
    bool known = dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 && map;
    if (known)
        find_module(map->l_name, path);
    struct line line;
    line_begin(&line, "function");
    snprintf(text, sizeof text, "0x%zx", (size_t)(uintptr_t)address);
    line_text(&line, "address", text);
    line_text(&line, "name", known ? info.dli_sname : NULL);
    line_text(&line, "module", known ? path : NULL);
    /* As in the module's file: programs that are not position-independent are not moved. */
    snprintf(text, sizeof text, "0x%zx", (size_t)((uintptr_t)address - (known ? map->l_addr : 0)));
    line_text(&line, "offset", text);
    line_end(&line);
}

static unsigned first_slot(const void *address)
{
    return (unsigned)(((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u) >> 50);
}

static unsigned add(const void *address)
{
    pthread_mutex_lock(&adding);
    unsigned slot = first_slot(address);
    while (table[slot] && table[slot] != address)
        slot = (slot + 1) % SLOTS;
    bool add = !table[slot], full = add && count == MOST_FUNCTIONS;
    if (add && !full) {
        count++;
        tell(address);
        atomic_store(&table[slot], address);
    }
    pthread_mutex_unlock(&adding);
    if (full)
        note("functions of OpenMP regions and tasks beyond 8192: they are not told apart");
    return full ? 0 : slot + 1;
}

unsigned function_number(const void *address)
{
    if (!address)
        return 0;
    unsigned slot = first_slot(address);
    for (;;) {
        const void *there = atomic_load_explicit(&table[slot], memory_order_relaxed);
        if (LIKELY(there == address))
            return slot + 1;
        if (!there)
            return add(address);
        slot = (slot + 1) % SLOTS;
    }
}

const void *function_address(unsigned number)
{
    return number ? atomic_load_explicit(&table[number - 1], memory_order_relaxed) : NULL;
}
