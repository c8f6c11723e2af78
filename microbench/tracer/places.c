/* Addresses in the program's code: see places.h. */
#define _GNU_SOURCE
#include "places.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "meta.h"
#include "process.h"

#define MOST_PLACES (PLACE_SLOTS / 2) /* half full, searches stay short */

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

static struct link_map *object_of(const void *address, Dl_info *info)
{
    struct link_map *map = NULL;
    return dladdr1(address, info, (void **)&map, RTLD_DL_LINKMAP) != 0 ? map : NULL;
}

struct link_map *place_object(const void *address)
{
    Dl_info info;
    return object_of(address, &info);
}

struct place {
    const void *address;
    const char *name, *module; /* NULL if not known */
    uintptr_t offset;          /* in the module's file */
    int32_t mark;
    char path[PATH_MAX];
};

static void look_up(const struct places *places, const void *address, struct place *place)
{
    Dl_info info = {0};
    const struct link_map *map = object_of(address, &info);
    *place = (struct place){.address = address, .name = map ? info.dli_sname : NULL};
    if (map) {
        find_module(map->l_name, place->path);
        place->module = place->path;
    }
    /* Programs that are not position-independent are not moved. */
    place->offset = (uintptr_t)address - (map ? map->l_addr : 0);
    place->mark = places->classify ? places->classify(address) : 0;
}

static void tell(const char *event, unsigned number, const struct place *place)
{
    if (process.summing)
        return;
    char text[32];
    struct line line;
    line_begin(&line, event);
    line_number(&line, "number", number);
    snprintf(text, sizeof text, "0x%zx", (size_t)(uintptr_t)place->address);
    line_text(&line, "address", text);
    line_text(&line, "name", place->name);
    line_text(&line, "module", place->module);
    snprintf(text, sizeof text, "0x%zx", (size_t)place->offset);
    line_text(&line, "offset", text);
    line_end(&line);
}

/* The slot of the address, or the empty one where it belongs. */
static unsigned find(const struct places *places, const void *address)
{
    unsigned slot = (unsigned)(((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u) >> 50);
    for (;;) {
        const void *there = atomic_load_explicit(&places->table[slot], memory_order_acquire);
        if (LIKELY(there == address) || !there)
            return slot;
        slot = (slot + 1) % PLACE_SLOTS;
    }
}

static unsigned add(struct places *places, const void *address)
{
    /* Before the lock is taken: the dynamic linker has one of its own, which may be held by one who
     * loads a library that calls MPI. */
    struct place place;
    look_up(places, address, &place);
    pthread_mutex_lock(&places->adding);
    unsigned slot = find(places, address);
    bool add = !places->table[slot], full = add && places->count == MOST_PLACES;
    if (add && !full) {
        places->count++;
        tell(places->event, slot + 1, &place);
        atomic_store(&places->marks[slot], place.mark);
        atomic_store_explicit(&places->table[slot], address, memory_order_release);
    }
    pthread_mutex_unlock(&places->adding);
    if (full)
        note(places->too_many);
    return full ? 0 : slot + 1;
}

unsigned place_known(const struct places *places, const void *address)
{
    unsigned slot = find(places, address);
    return atomic_load_explicit(&places->table[slot], memory_order_relaxed) ? slot + 1 : 0;
}

unsigned place_number(struct places *places, const void *address)
{
    if (!address)
        return 0;
    unsigned number = place_known(places, address);
    return LIKELY(number) ? number : add(places, address);
}

const void *place_address(const struct places *places, unsigned number)
{
    return number ? atomic_load_explicit(&places->table[number - 1], memory_order_relaxed) : NULL;
}
