/* Counts what a program asks of MPI and OpenMP, to be compared with what a trace holds.
 *
 * Shares no code with the tracer, nor its way of finding calls: every function of the MPI library,
 * whatever its language and arguments, gets the same stub, which counts and passes on 16 words as
 * they came (names.h, made from the library's symbols). Bytes are read from the arguments of the
 * calls that send. Loaded with LD_PRELOAD; each process writes COUNTS_DIR/PID.json when it ends:
 *
 *     {"rank": 0, "calls": {"MPI_Send": 3}, "parallel": 0,
 *      "messages": {"count": 3, "bytes": 24}, "collective": {"MPI_Bcast": 8}}
 *
 * Calls inside of calls count as one: MPICH's Fortran calls its C. Those inside of MPI_Finalize are
 * the program's, which MPI calls back there.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef long word;
typedef word function(word, word, word, word, word, word, word, word, word, word, word, word, word,
                      word, word, word);

enum language { C, FORTRAN };

/* What is to be known of a call that sends: the numbers of its arguments, -1 for none. */
struct sender {
    const char *name; /* without MPI_ */
    enum { SENDS, PREPARES, GIVES, ROOT_GIVES, OTHERS_GIVE, TO_ROOT, GIVES_PARTS } how;
    int count, type, to, communicator, request; /* `to`: destination, or root */
    int in_place; /* where count and type are with MPI_IN_PLACE: count, with its type behind it */
};

static const struct sender senders[] = {
    {"send", SENDS, 1, 2, 3, -1, -1},
    {"bsend", SENDS, 1, 2, 3, -1, -1},
    {"ssend", SENDS, 1, 2, 3, -1, -1},
    {"rsend", SENDS, 1, 2, 3, -1, -1},
    {"isend", SENDS, 1, 2, 3, -1, -1},
    {"ibsend", SENDS, 1, 2, 3, -1, -1},
    {"issend", SENDS, 1, 2, 3, -1, -1},
    {"irsend", SENDS, 1, 2, 3, -1, -1},
    {"sendrecv", SENDS, 1, 2, 3, -1, -1},
    {"sendrecv_replace", SENDS, 1, 2, 3, -1, -1},
    {"send_init", PREPARES, 1, 2, 3, -1, 6},
    {"bsend_init", PREPARES, 1, 2, 3, -1, 6},
    {"ssend_init", PREPARES, 1, 2, 3, -1, 6},
    {"rsend_init", PREPARES, 1, 2, 3, -1, 6},
    {"bcast", ROOT_GIVES, 1, 2, 3, 4, -1},
    {"reduce", OTHERS_GIVE, 2, 3, 5, 6, -1},
    {"allreduce", GIVES, 2, 3, -1, 5, -1},
    {"scan", GIVES, 2, 3, -1, 5, -1},
    {"exscan", GIVES, 2, 3, -1, 5, -1},
    {"alltoall", GIVES, 1, 2, -1, 6, -1, 4},
    {"allgather", GIVES, 1, 2, -1, 6, -1, 4},
    {"allgatherv", GIVES, 1, 2, -1, 7, -1},
    {"gather", TO_ROOT, 1, 2, 6, 7, -1, 4},
    {"gatherv", TO_ROOT, 1, 2, 7, 8, -1},
    {"alltoallv", GIVES_PARTS, 1, 3, -1, 8, -1},
};
enum { SENDERS = sizeof senders / sizeof *senders };

#define NAME(symbol, shown) {#symbol, shown, NULL, NULL, 0},
static struct entry {
    const char *symbol;
    const char *shown;
    function *real;
    const struct sender *sender;
    atomic_long calls;
} entries[] = {
#include "names.h"
};
#undef NAME
enum { ENTRIES = sizeof entries / sizeof *entries };

#define NAME(symbol, shown) NUMBER_##symbol,
enum {
#include "names.h"
};
#undef NAME

static int rank = -1;
static atomic_long messages, bytes, given[SENDERS];
static _Thread_local int depth;

static struct { /* persistent sends */
    word handle;
    long size;
} prepared[1 << 16];
static atomic_int preparations;

static word read_handle(enum language language, word address)
{
    return language == FORTRAN ? *(MPI_Fint *)address
                               : (word)(intptr_t) * (MPI_Request *)address;
}

static int integer(enum language language, word argument)
{
    return language == FORTRAN ? *(MPI_Fint *)argument : (int)argument;
}

static MPI_Datatype type_of(enum language language, word argument)
{
    return language == FORTRAN ? PMPI_Type_f2c(*(MPI_Fint *)argument)
                               : (MPI_Datatype)(intptr_t)argument;
}

static MPI_Comm communicator_of(enum language language, word argument)
{
    return language == FORTRAN ? PMPI_Comm_f2c(*(MPI_Fint *)argument)
                               : (MPI_Comm)(intptr_t)argument;
}

static long size_of(const struct sender *s, enum language language, const word *a)
{
    int size = 0, ranks = 1;
    if (s->in_place && a[0] == (word)(intptr_t)MPI_IN_PLACE) {
        PMPI_Type_size(type_of(language, a[s->in_place + 1]), &size);
        return (long)size * integer(language, a[s->in_place]);
    }
    PMPI_Type_size(type_of(language, a[s->type]), &size);
    if (s->how != GIVES_PARTS)
        return (long)size * integer(language, a[s->count]);
    PMPI_Comm_size(communicator_of(language, a[s->communicator]), &ranks);
    long all = 0;
    for (int i = 0; i < ranks; i++)
        all += ((int *)a[s->count])[i];
    return size * all;
}

/* In an intercommunicator the root says MPI_ROOT, and the others of its group say nobody. */
static bool gives_by_root(const struct sender *s, enum language language, const word *a)
{
    MPI_Comm communicator = communicator_of(language, a[s->communicator]);
    int me = -1, inter = 0, root = integer(language, a[s->to]);
    PMPI_Comm_test_inter(communicator, &inter);
    if (inter && root == MPI_PROC_NULL)
        return false;
    if (s->how == TO_ROOT) /* whose own part counts, too */
        return !inter || root != MPI_ROOT;
    PMPI_Comm_rank(communicator, &me);
    return (root == (inter ? MPI_ROOT : me)) == (s->how == ROOT_GIVES);
}

static void count_sender(const struct sender *s, enum language language, const word *a)
{
    switch (s->how) {
    case SENDS:
        if (integer(language, a[s->to]) != MPI_PROC_NULL) {
            messages++;
            bytes += size_of(s, language, a);
        }
        return;
    case PREPARES:
        return; /* after the call, when there is a request */
    case ROOT_GIVES:
    case OTHERS_GIVE:
    case TO_ROOT:
        if (!gives_by_root(s, language, a))
            return;
        break;
    default:
        break;
    }
    given[s - senders] += size_of(s, language, a);
}

static void prepare(const struct sender *s, enum language language, const word *a)
{
    if (integer(language, a[s->to]) == MPI_PROC_NULL)
        return;
    int i = preparations++;
    if (i >= 1 << 16)
        abort();
    prepared[i].handle = read_handle(language, a[s->request]);
    prepared[i].size = size_of(s, language, a);
}

static void start(word handle)
{
    int known = preparations;
    for (int i = known - 1; i >= 0; i--)
        if (prepared[i].handle == handle) {
            messages++;
            bytes += prepared[i].size;
            return;
        }
}

static void forget(word handle)
{
    int known = preparations;
    for (int i = 0; i < known; i++)
        if (prepared[i].handle == handle)
            prepared[i].handle = 0;
}

static void before(struct entry *e, enum language language, const word *a)
{
    if (e->sender)
        count_sender(e->sender, language, a);
    else if (!strcmp(e->shown, "MPI_Start"))
        start(read_handle(language, a[0]));
    else if (!strcmp(e->shown, "MPI_Request_free"))
        forget(read_handle(language, a[0]));
    else if (!strcmp(e->shown, "MPI_Startall"))
        for (int i = 0; i < integer(language, a[0]); i++)
            start(language == FORTRAN ? (word)((MPI_Fint *)a[1])[i]
                                      : (word)(intptr_t)((MPI_Request *)a[1])[i]);
    else if (!strcmp(e->shown, "MPI_Finalize"))
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

static word pass(int number, enum language language, word a0, word a1, word a2, word a3, word a4,
                 word a5, word a6, word a7, word a8, word a9, word b0, word b1, word b2, word b3,
                 word b4, word b5)
{
    struct entry *e = &entries[number];
    const word a[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9};
    if (!e->real)
        e->real = (function *)dlsym(RTLD_NEXT, e->symbol);
    bool of_mpi = !strncmp(e->shown, "MPI_", 4);
    if (!of_mpi || depth == 0)
        e->calls++;
    if (of_mpi && depth == 0)
        before(e, language, a);
    bool nests = of_mpi && strcmp(e->shown, "MPI_Finalize");
    depth += nests;
    word result = e->real(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5);
    depth -= nests;
    if (of_mpi && depth == 0 && e->sender && e->sender->how == PREPARES)
        prepare(e->sender, language, a);
    return result;
}

/* Names are given to the assembler only: the compiler knows other declarations of them. */
#define NAME(symbol, shown)                                                                       \
    word stub_##symbol(word a0, word a1, word a2, word a3, word a4, word a5, word a6, word a7,    \
                       word a8, word a9, word b0, word b1, word b2, word b3, word b4, word b5)    \
        __asm__(#symbol);                                                                         \
    word stub_##symbol(word a0, word a1, word a2, word a3, word a4, word a5, word a6, word a7,    \
                       word a8, word a9, word b0, word b1, word b2, word b3, word b4, word b5)    \
    {                                                                                             \
        return pass(NUMBER_##symbol, #symbol[0] == 'm' ? FORTRAN : C, a0, a1, a2, a3, a4, a5, a6, \
                    a7, a8, a9, b0, b1, b2, b3, b4, b5);                                          \
    }
#include "names.h"
#undef NAME

static bool is_sender(const char *shown, const char *name)
{
    if (strncmp(shown, "MPI_", 4))
        return false;
    shown += 4;
    for (; *shown && *name && tolower((unsigned char)*shown) == *name; shown++, name++)
        ;
    return !*shown && !*name;
}

__attribute__((constructor)) static void find(void)
{
    for (int i = 0; i < ENTRIES; i++)
        for (int j = 0; j < SENDERS; j++)
            if (is_sender(entries[i].shown, senders[j].name))
                entries[i].sender = &senders[j];
}

__attribute__((destructor)) static void write_down(void)
{
    const char *folder = getenv("COUNTS_DIR");
    char path[4096];
    long parallel = 0;
    bool any = false;
    for (int i = 0; i < ENTRIES; i++)
        any |= entries[i].calls > 0;
    if (!folder || !any)
        return;
    snprintf(path, sizeof path, "%s/%ld.json", folder, (long)getpid());
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "{\"rank\": %d, \"calls\": {", rank);
    const char *comma = "";
    for (int i = 0; i < ENTRIES; i++) {
        long calls = entries[i].calls;
        if (!strcmp(entries[i].shown, "parallel"))
            parallel += calls;
        else if (calls) {
            fprintf(file, "%s\"%s\": %ld", comma, entries[i].symbol, calls);
            comma = ", ";
        }
    }
    fprintf(file, "}, \"parallel\": %ld, \"messages\": {\"count\": %ld, \"bytes\": %ld}, ",
            parallel, (long)messages, (long)bytes);
    fprintf(file, "\"collective\": {");
    comma = "";
    for (int j = 0; j < SENDERS; j++)
        if (senders[j].how >= GIVES && given[j]) {
            fprintf(file, "%s\"%s\": %ld", comma, senders[j].name, (long)given[j]);
            comma = ", ";
        }
    fprintf(file, "}}\n");
    fclose(file);
}
