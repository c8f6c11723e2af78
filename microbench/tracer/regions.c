/* Regions of the user's (popmodel.h): names and their numbers.
 *
 * A name is known by its letters, not by where they are: programs put names together in buffers.
 * The table only grows, and known names are found without a lock.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"
#include "openmp.h"
#include "popmodel.h"

#define SLOTS 8192u
#define MOST_NAMES (SLOTS / 2)
#define DEEPEST 64 /* that are begun and not ended on a thread, of those it is checked which are */

struct name {
    uint64_t hash;
    unsigned number; /* from 1 */
    char text[];
};

static struct name *_Atomic table[SLOTS];
static unsigned count;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static __thread struct {
    unsigned depth;
    unsigned begun[DEEPEST];
} here __attribute__((tls_model("initial-exec")));

/* FNV-1a. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* The slot of the name, or the empty one where it belongs. */
static unsigned find(const char *text, uint64_t hash)
{
    unsigned slot = (unsigned)(hash ^ hash >> 32) % SLOTS;
    for (;;) {
        const struct name *there = atomic_load_explicit(&table[slot], memory_order_acquire);
        if (!there || (there->hash == hash && strcmp(there->text, text) == 0))
            return slot;
        slot = (slot + 1) % SLOTS;
    }
}

static void tell(const struct name *name)
{
    struct line line;
    line_begin(&line, "name");
    line_number(&line, "id", name->number);
    line_text(&line, "text", name->text);
    line_end(&line);
}

static unsigned add(const char *text, uint64_t hash)
{
    size_t size = strlen(text) + 1;
    pthread_mutex_lock(&adding);
    unsigned slot = find(text, hash);
    struct name *name = table[slot];
    if (!name && count < MOST_NAMES && (name = malloc(sizeof *name + size))) {
        name->hash = hash;
        name->number = ++count;
        memcpy(name->text, text, size);
        tell(name);
        atomic_store_explicit(&table[slot], name, memory_order_release);
    }
    pthread_mutex_unlock(&adding);
    return name ? name->number : 0;
}

/* 0 if it cannot have one. */
static unsigned number_of(const char *text)
{
    uint64_t hash = hash_of(text);
    const struct name *known = atomic_load_explicit(&table[find(text, hash)], memory_order_acquire);
    return LIKELY(known != NULL) ? known->number : add(text, hash);
}

static void record(struct thread *t, enum kind kind, unsigned number)
{
    room(t, 2);
    uint64_t time = now();
    put(t, time, kind, 0, number, 0, 0);
    counters_at(t, time);
}

EXPORTED void popmodel_region_begin(const char *name)
{
    struct thread *t = process_start() ? thread_here() : NULL;
    if (!t)
        return;
    unsigned number = name ? number_of(name) : 0;
    if (!number) {
        note(name ? "names of user regions beyond 4096: not recorded"
                  : "user regions without a name: not recorded");
        return;
    }
    if (here.depth < DEEPEST)
        here.begun[here.depth] = number;
    here.depth++;
    record(t, USER_BEGIN, number);
}

/* Takes the region from those that are begun on this thread; they need not be nested. */
static bool take(unsigned number)
{
    if (here.depth > DEEPEST) {
        here.depth--;
        return true;
    }
    for (unsigned i = here.depth; i-- > 0;)
        if (here.begun[i] == number) {
            memmove(here.begun + i, here.begun + i + 1, (here.depth - i - 1) * sizeof *here.begun);
            here.depth--;
            return true;
        }
    return false;
}

EXPORTED void popmodel_region_end(const char *name)
{
    struct thread *t = process_start() ? thread_here() : NULL;
    if (!t)
        return;
    unsigned number = name ? number_of(name) : 0;
    if (!number || !take(number)) {
        note("ends of user regions without a start on the same thread: not recorded");
        return;
    }
    record(t, USER_END, number);
}

EXPORTED void popmodel_tracing(int on)
{
    tracing(on != 0);
}
