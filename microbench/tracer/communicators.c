/* Communicators: see communicators.h.
 *
 * What is known of one is cached on it as an attribute: MPI itself then says when it is freed, and
 * a handle that is used again starts anew.
 */
#define _GNU_SOURCE
#include "communicators.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"
#include "process.h"

_Atomic uint64_t communicators_freed = 1;
bool many_threads;

static struct communicator nobody; /* where nothing is known: memory ran out, or no handle */
static int key = MPI_KEYVAL_INVALID;
static MPI_Group world_group;
static _Atomic uint32_t last_id;

/* FNV-1a, 64 bits. */
#define HASH_START UINT64_C(0xcbf29ce484222325)

static uint64_t hash_bytes(uint64_t hash, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        hash = (hash ^ ((value >> 8 * i) & 0xff)) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_ranks(uint64_t hash, const int *ranks, int n)
{
    for (int i = 0; i < n; i++)
        hash = hash_bytes(hash, (uint32_t)(ranks ? ranks[i] : i), 4);
    return hash;
}

static int first_of(const int *ranks)
{
    return ranks ? ranks[0] : 0;
}

/* The same on both sides of an intercommunicator. */
static uint64_t hash_of(const struct communicator *c, const struct communicator *parent, int tag)
{
    uint64_t hash = HASH_START;
    if (c->remote) {
        bool local_first = first_of(c->local) < first_of(c->world);
        hash = local_first ? hash_ranks(hash, c->local, c->size)
                           : hash_ranks(hash, c->world, c->remote);
        hash = hash_bytes(hash, UINT64_MAX, 8);
        hash = local_first ? hash_ranks(hash, c->world, c->remote)
                           : hash_ranks(hash, c->local, c->size);
    } else {
        hash = hash_ranks(hash, c->world, c->size);
    }
    if (parent) {
        hash = hash_bytes(hash, parent->hash, 8);
        hash = hash_bytes(hash, parent->ordinal, 4);
    }
    return tag ? hash_bytes(hash, (uint32_t)tag, 4) : hash;
}

/* How many communicators of a hash there were; open addressing, never shrinks. */
static struct count {
    uint64_t hash;
    uint32_t count; /* 0: free */
} *counts;
static size_t counts_room, counts_used;

static struct count *count_slot(uint64_t hash)
{
    size_t i = hash & (counts_room - 1);
    while (counts[i].count && counts[i].hash != hash)
        i = (i + 1) & (counts_room - 1);
    return &counts[i];
}

static bool counts_grow(void)
{
    struct count *old = counts;
    size_t old_room = counts_room;
    size_t wider = old_room ? 2 * old_room : 64;
    struct count *fresh = calloc(wider, sizeof *fresh);
    if (!fresh)
        return false;
    counts = fresh;
    counts_room = wider;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].count)
            *count_slot(old[i].hash) = old[i];
    free(old);
    return true;
}

/* 0 for the first of this hash. */
static uint32_t next_ordinal(uint64_t hash)
{
    process_lock();
    uint32_t ordinal = 0;
    if (2 * counts_used < counts_room || counts_grow()) {
        struct count *slot = count_slot(hash);
        counts_used += slot->count == 0;
        slot->hash = hash;
        ordinal = slot->count++;
    }
    process_unlock();
    return ordinal;
}

static void add_members(struct line *line, const char *name, const int *ranks, int n)
{
    line_key(line, name);
    for (int i = 0; i < n; i++) {
        char number[16];
        snprintf(number, sizeof number, "%c%d", i ? ',' : '[', ranks ? ranks[i] : i);
        line_raw(line, number);
    }
    line_raw(line, n ? "]" : "[]");
}

static void tell(const struct communicator *c)
{
    if (process.summing)
        return;
    struct line line;
    line_begin(&line, "communicator");
    line_number(&line, "id", c->id);
    line_number(&line, "size", c->size);
    line_hexadecimal(&line, "hash", c->hash);
    line_number(&line, "ordinal", c->ordinal);
    line_number(&line, "rank", c->rank);
    if (c->remote)
        line_number(&line, "remote_size", c->remote);
    if (c->rank == 0) { /* one list for all: the world may be large */
        add_members(&line, "members", c->local, c->size);
        if (c->remote)
            add_members(&line, "remote", c->world, c->remote);
    }
    line_end(&line);
}

/* Ranks in the world of a group's members, -1 for those that are not there; NULL if each has the
 * rank that it has in the world. False if there is no memory. */
static bool translate(MPI_Group group, int *size, int **ranks)
{
    pmpi.Group_size(group, size);
    size_t bytes = sizeof(int) * (size_t)(*size ? *size : 1);
    int *numbers = malloc(bytes), *there = malloc(bytes);
    *ranks = NULL;
    if (!numbers || !there) {
        free(numbers);
        free(there);
        return false;
    }
    for (int i = 0; i < *size; i++)
        numbers[i] = i;
    pmpi.Group_translate_ranks(group, *size, numbers, world_group, there);
    bool same = memcmp(numbers, there, bytes) == 0;
    for (int i = 0; i < *size; i++)
        if (there[i] == MPI_UNDEFINED)
            there[i] = -1;
    free(numbers);
    if (same)
        free(there);
    else
        *ranks = there;
    return true;
}

static void drop(struct communicator *c)
{
    if (c->local != c->world)
        free(c->local);
    free(c->world);
    free(c->neighbours);
    free(c);
}

void communicator_release(struct communicator *c)
{
    if (c != &nobody && shared_add(&c->users, -1) == 0)
        drop(c);
}

static struct communicator *identify(struct communicator *c, const struct communicator *parent,
                                     int tag)
{
    c->hash = hash_of(c, parent, tag);
    c->ordinal = next_ordinal(c->hash);
    c->id = atomic_fetch_add(&last_id, 1) + 1;
    atomic_init(&c->users, 1);
    return c;
}

static struct communicator *describe(MPI_Comm comm, const struct communicator *parent, int tag)
{
    struct communicator *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    int inter = 0;
    pmpi.Comm_test_inter(comm, &inter);
    pmpi.Comm_rank(comm, &c->rank);
    MPI_Group group;
    pmpi.Comm_group(comm, &group);
    bool known = translate(group, &c->size, &c->local);
    pmpi.Group_free(&group);
    c->world = c->local;
    if (inter && known) {
        pmpi.Comm_remote_group(comm, &group);
        known = translate(group, &c->remote, &c->world);
        pmpi.Group_free(&group);
    }
    if (!known) {
        drop(c);
        return NULL;
    }
    return identify(c, parent, tag);
}

void communicator_keep(MPI_Comm comm, struct communicator *c)
{
    tell(c);
    pmpi.Comm_set_attr(comm, key, c);
}

void communicator_new(MPI_Comm comm, const struct communicator *parent, int tag)
{
    if (comm == handles.no_comm)
        return;
    struct communicator *c = describe(comm, parent, tag);
    if (c)
        communicator_keep(comm, c);
    else
        note("not enough memory for a communicator: its messages are not recorded");
}

static bool copy_ranks(const int *ranks, int n, int **copy)
{
    *copy = ranks ? malloc(sizeof **copy * (size_t)n) : NULL;
    if (*copy)
        memcpy(*copy, ranks, sizeof **copy * (size_t)n);
    return *copy || !ranks;
}

struct communicator *communicator_promise(const struct communicator *parent)
{
    struct communicator *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->rank = parent->rank;
    c->size = parent->size;
    c->remote = parent->remote;
    bool known = copy_ranks(parent->local, c->size, &c->local);
    c->world = c->local;
    if (c->remote)
        known = copy_ranks(parent->world, c->remote, &c->world) && known;
    if (!known) {
        drop(c);
        return NULL;
    }
    return identify(c, parent, 0);
}

static int copy_nothing(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)state, (void)in, (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int keyval, void *c, void *state)
{
    (void)comm, (void)keyval, (void)state;
    atomic_fetch_add(&communicators_freed, 1);
    communicator_release(c);
    return MPI_SUCCESS;
}

static void predefined(MPI_Comm comm, uint32_t id, int rank, int size, int world)
{
    struct communicator *c = calloc(1, sizeof *c);
    if (!c)
        return;
    c->rank = rank;
    c->size = size;
    if (world > 0 && copy_ranks(&world, 1, &c->local))
        c->world = c->local;
    identify(c, NULL, 0);
    c->id = id;
    communicator_keep(comm, c);
}

void communicators_start(int rank, int size)
{
    pmpi.Comm_create_keyval(copy_nothing, forget, &key, NULL);
    pmpi.Comm_group(handles.world, &world_group);
    predefined(handles.world, 1, rank, size, 0);
    predefined(handles.self, 2, 0, 1, rank);
    atomic_store(&last_id, 2);
}

#define FIRST_TAG (-2) /* below MPI_ANY_TAG of any library, and of no program's message */

static struct neighbours *neighbours_make(int out, int in)
{
    struct neighbours *n = malloc(sizeof *n + sizeof n->of[0] * (size_t)(out + in));
    if (n)
        *n = (struct neighbours){out, in};
    return n;
}

static struct neighbours *neighbours_on_grid(MPI_Comm comm)
{
    int dimensions = 0;
    pmpi.Cartdim_get(comm, &dimensions);
    int many = 2 * dimensions;
    struct neighbours *n = neighbours_make(many, many);
    for (int d = 0; n && d < dimensions; d++) {
        int below, above;
        pmpi.Cart_shift(comm, d, 1, &below, &above);
        struct neighbour *out = &n->of[2 * d], *in = &n->of[many + 2 * d];
        out[0] = (struct neighbour){below, FIRST_TAG - 2 * d};
        out[1] = (struct neighbour){above, FIRST_TAG - 2 * d - 1};
        in[0] = (struct neighbour){below, out[1].tag};
        in[1] = (struct neighbour){above, out[0].tag};
    }
    return n;
}

static struct neighbours *neighbours_in_graph(MPI_Comm comm, const struct communicator *c,
                                              bool distributed)
{
    int in = 0, out = 0, weighted;
    if (distributed)
        pmpi.Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    else if (pmpi.Graph_neighbors_count(comm, c->rank, &in) == MPI_SUCCESS)
        out = in;
    struct neighbours *n = neighbours_make(out, in);
    int *ranks = malloc(sizeof *ranks * (size_t)(2 * (in + out) + 1));
    if (n && ranks) {
        int *to = ranks + in, *weights = ranks + in + out;
        if (distributed)
            pmpi.Dist_graph_neighbors(comm, in, ranks, weights, out, to, weights + in);
        else
            pmpi.Graph_neighbors(comm, c->rank, in, ranks);
        for (int i = 0; i < out; i++)
            n->of[i] = (struct neighbour){distributed ? to[i] : ranks[i], FIRST_TAG};
        for (int i = 0; i < in; i++)
            n->of[out + i] = (struct neighbour){ranks[i], FIRST_TAG};
    } else {
        free(n);
        n = NULL;
    }
    free(ranks);
    return n;
}

const struct neighbours *neighbours_of(struct communicator *c, MPI_Comm comm)
{
    if (!c->neighbours) {
        int kind = MPI_UNDEFINED;
        pmpi.Topo_test(comm, &kind);
        if (kind == MPI_CART)
            c->neighbours = neighbours_on_grid(comm);
        else if (kind == MPI_GRAPH || kind == MPI_DIST_GRAPH)
            c->neighbours = neighbours_in_graph(comm, c, kind == MPI_DIST_GRAPH);
        else
            c->neighbours = neighbours_make(0, 0); /* an error, which MPI shall find */
        if (!c->neighbours)
            note("not enough memory for neighbours: messages between them are not recorded");
    }
    return c->neighbours;
}

struct communicator *communicator_find(struct thread *t, MPI_Comm comm)
{
    if (comm == handles.no_comm)
        return &nobody; /* the program's mistake: MPI shall say so */
    uint64_t freed = atomic_load(&communicators_freed);
    if (t->generation != freed) {
        memset(t->known, 0, sizeof t->known);
        t->generation = freed;
    }
    struct communicator *c = NULL;
    int found = 0;
    pmpi.Comm_get_attr(comm, key, &c, &found);
    if (!found) {
        /* Made by a call without a wrapper, such as MPI_Comm_get_parent. */
        static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&one_by_one);
        pmpi.Comm_get_attr(comm, key, &c, &found);
        if (!found)
            communicator_new(comm, NULL, 0);
        pmpi.Comm_get_attr(comm, key, &c, &found);
        pthread_mutex_unlock(&one_by_one);
        if (!found)
            return &nobody;
    }
    uintptr_t handle = handle_number(comm);
    unsigned slot = (unsigned)((handle >> 9) ^ (handle >> 4) ^ handle) % KNOWN;
    t->known[slot].handle = handle;
    t->known[slot].communicator = c;
    return c;
}
