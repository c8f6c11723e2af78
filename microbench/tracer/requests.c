/* Requests by handle: see requests.h. A table in parts with a lock each; the locks are taken only
 * where several threads may call MPI at the same time. */
#define _GNU_SOURCE
#include "requests.h"

#include <pthread.h>
#include <stdlib.h>

#include "meta.h"

#define PARTS 64
#define FIRST_CHAINS 64
#define NODES_AT_ONCE 128

_Atomic long requests_known;

static struct part {
    pthread_mutex_t lock;
    struct request **chains;
    size_t room, used; /* room: a power of two, 0 at first */
    struct request *unused;
    char apart[64]; /* no two locks in one cache line */
} parts[PARTS];

static _Atomic long receives, collectives;

__attribute__((constructor)) static void make_locks(void)
{
    for (int i = 0; i < PARTS; i++)
        pthread_mutex_init(&parts[i].lock, NULL);
}

int64_t receive_number(void)
{
    return shared_add(&receives, 1);
}

int64_t receive_numbers(int many)
{
    return shared_add(&receives, many) - many + 1;
}

int64_t collective_number(void)
{
    return shared_add(&collectives, 1);
}

/* A request and a message may have the same number. */
static uint64_t request_key(MPI_Request request)
{
    return (uint64_t)(uintptr_t)request << 1;
}

static uint64_t message_key(MPI_Message message)
{
    return (uint64_t)(uintptr_t)message << 1 | 1;
}

static uint64_t mixed(uint64_t key)
{
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 32;
}

static struct part *part_of(uint64_t key)
{
    return &parts[mixed(key) % PARTS];
}

static struct request **chain_of(struct part *part, uint64_t key)
{
    return &part->chains[mixed(key) / PARTS & (part->room - 1)];
}

static void lock(struct part *part)
{
    if (many_threads)
        pthread_mutex_lock(&part->lock);
}

static void unlock(struct part *part)
{
    if (many_threads)
        pthread_mutex_unlock(&part->lock);
}

/* Keeps the order in which entries of one handle stand. */
static bool widen(struct part *part)
{
    struct part wider = {.room = part->room ? 2 * part->room : FIRST_CHAINS};
    wider.chains = calloc(wider.room, sizeof *wider.chains);
    if (!wider.chains)
        return part->room > 0;
    for (size_t i = 0; i < part->room; i++) {
        for (struct request *r = part->chains[i], *next; r; r = next) {
            next = r->chain;
            struct request **end = chain_of(&wider, r->key);
            while (*end)
                end = &(*end)->chain;
            r->chain = NULL;
            *end = r;
        }
    }
    free(part->chains);
    part->chains = wider.chains;
    part->room = wider.room;
    return true;
}

static struct request *unused(struct part *part)
{
    if (!part->unused) {
        struct request *more = calloc(NODES_AT_ONCE, sizeof *more);
        if (!more)
            return NULL;
        for (int i = 0; i < NODES_AT_ONCE; i++) {
            more[i].chain = part->unused;
            part->unused = &more[i];
        }
    }
    struct request *r = part->unused;
    part->unused = r->chain;
    return r;
}

static struct request *add(uint64_t key, enum request_kind kind, struct communicator *communicator)
{
    struct part *part = part_of(key);
    lock(part);
    struct request *r = NULL;
    if (part->used < part->room || widen(part))
        r = unused(part);
    if (r) {
        struct request **chain = chain_of(part, key);
        *r = (struct request){.key = key,
                              .kind = kind,
                              .active = true,
                              .communicator = communicator,
                              .chain = *chain};
        *chain = r;
        part->used++;
    }
    unlock(part);
    if (!r) {
        note("not enough memory for a request: its end is not recorded");
        return NULL;
    }
    shared_add(&communicator->users, 1);
    shared_add(&requests_known, 1);
    return r;
}

static struct request *lookup(uint64_t key, bool take)
{
    if (!request_any())
        return NULL;
    struct part *part = part_of(key);
    struct request *r = NULL;
    lock(part);
    if (part->room) {
        struct request **link = chain_of(part, key);
        while (*link && (*link)->key != key)
            link = &(*link)->chain;
        r = *link;
        if (r && take)
            *link = r->chain;
    }
    unlock(part);
    return r;
}

struct request *request_add(MPI_Request request, enum request_kind kind, struct communicator *c)
{
    return add(request_key(request), kind, c);
}

struct request *message_add(MPI_Message message, struct communicator *c)
{
    return add(message_key(message), MESSAGE, c);
}

struct request *request_find(MPI_Request request)
{
    return lookup(request_key(request), false);
}

struct request *request_take(MPI_Request request)
{
    return lookup(request_key(request), true);
}

struct request *message_take(MPI_Message message)
{
    return lookup(message_key(message), true);
}

void request_put_back(struct request *r)
{
    struct part *part = part_of(r->key);
    lock(part);
    struct request **chain = chain_of(part, r->key);
    r->chain = *chain;
    *chain = r;
    unlock(part);
}

void request_drop(struct request *r)
{
    struct part *part = part_of(r->key);
    struct communicator *communicator = r->communicator;
    free(r->exchange);
    lock(part);
    r->chain = part->unused;
    part->unused = r;
    part->used--;
    unlock(part);
    communicator_release(communicator);
    shared_add(&requests_known, -1);
}
