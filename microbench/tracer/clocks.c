/* Clock exchanges: see clocks.h.
 *
 * CLOCK_MONOTONIC is one clock for all processes of a host, and counts from each host's boot. The
 * first rank on each host (its leader) sends the host of rank 0 a message of eight bytes and gets
 * back the time there, again and again; the exchange that took the least time tells the offset
 * best. All that is needed to align the hosts is then in the leaders' meta files.
 */
#define _GNU_SOURCE
#include "clocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"
#include "next.h"
#include "process.h"
#include "state.h"

#define EXCHANGES 64
#define KEPT 8
#define TAG 1

static MPI_Comm ours; /* a communicator of our own */
static int *leaders; /* a rank on each of the other hosts */
static int leader_count;
static bool is_leader;
static char first_host[sizeof process.host]; /* of rank 0 */

/* What tells the host of a process: its boot, since hosts may be called the same; or the name that
 * the user gives it. */
static uint64_t this_host(void)
{
    char boot[64] = "";
    if (!getenv("POPMODEL_TRACE_HOST")) {
        FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
        if (!file || !fgets(boot, sizeof boot, file))
            boot[0] = '\0';
        if (file)
            fclose(file);
    }
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = boot[0] ? boot : process.host; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return hash;
}

/* Launchers tell each rank how many there are on its host; then nobody has to be asked. */
static bool is_alone(int size)
{
    static const char *const COUNTS[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                         "MV2_COMM_WORLD_LOCAL_SIZE"};
    if (getenv("POPMODEL_TRACE_HOST"))
        return false;
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
        const char *count = getenv(COUNTS[i]);
        if (count && atoi(count) == size)
            return true;
    }
    return size == 1;
}

/* What each rank tells the others. */
struct place {
    uint64_t host;
    uint64_t records; /* whether it does */
};

/* The first rank that records of each host but that of rank 0. */
static void find_leaders(const struct place *places, int rank, int size)
{
    for (int r = 0; r < size; r++) {
        bool is_new = places[r].records && places[r].host != places[0].host;
        for (int i = 0; is_new && i < leader_count; i++)
            is_new = places[r].host != places[leaders[i]].host;
        if (!is_new)
            continue;
        leaders[leader_count++] = r;
        is_leader = is_leader || r == rank;
    }
}

static int by_duration(const void *one, const void *other)
{
    const int64_t *a = one, *b = other;
    int64_t difference = (a[2] - a[0]) - (b[2] - b[0]);
    return (difference > 0) - (difference < 0);
}

static void tell(const char *when, int64_t exchanges[][3])
{
    qsort(exchanges, EXCHANGES, sizeof *exchanges, by_duration);
    struct line line;
    line_begin(&line, "clock");
    line_text(&line, "when", when);
    line_text(&line, "with", first_host);
    line_key(&line, "round_trips");
    for (int i = 0; i < KEPT; i++) {
        char one[80];
        snprintf(one, sizeof one, "%s[%lld,%lld,%lld]", i ? "," : "[", (long long)exchanges[i][0],
                 (long long)exchanges[i][1], (long long)exchanges[i][2]);
        line_raw(&line, one);
    }
    line_raw(&line, "]");
    line_end(&line);
}

static void ask(const char *when)
{
    int64_t exchanges[EXCHANGES][3];
    for (int i = 0; i < EXCHANGES; i++) {
        exchanges[i][0] = (int64_t)now();
        pmpi.Send(&exchanges[i][0], 8, handles.byte, 0, TAG, ours);
        pmpi.Recv(&exchanges[i][1], 8, handles.byte, 0, TAG, ours, MPI_STATUS_IGNORE);
        exchanges[i][2] = (int64_t)now();
    }
    tell(when, exchanges);
}

static void answer(int leader)
{
    for (int i = 0; i < EXCHANGES; i++) {
        int64_t time;
        pmpi.Recv(&time, 8, handles.byte, leader, TAG, ours, MPI_STATUS_IGNORE);
        time = (int64_t)now();
        pmpi.Send(&time, 8, handles.byte, leader, TAG, ours);
    }
}

static void exchange(const char *when, int rank)
{
    if (is_leader)
        ask(when);
    for (int i = 0; rank == 0 && i < leader_count; i++)
        answer(leaders[i]);
}

static void tell_first_host(int rank)
{
    const int size = sizeof first_host;
    memcpy(first_host, process.host, sizeof first_host);
    if (is_leader)
        pmpi.Recv(first_host, size, handles.byte, 0, TAG, ours, MPI_STATUS_IGNORE);
    for (int i = 0; rank == 0 && i < leader_count; i++)
        pmpi.Send(first_host, size, handles.byte, leaders[i], TAG, ours);
}

void clocks_start(int rank, int size, bool records)
{
    if (is_alone(size))
        return;
    struct place here = {this_host(), records};
    struct place *places = malloc(sizeof *places * (size_t)size);
    leaders = malloc(sizeof *leaders * (size_t)size);
    if (!places || !leaders) {
        /* The others are waiting in a collective operation: there is no way back. */
        complain("not enough memory for the hosts of %d ranks", size);
        abort();
    }
    pmpi.Allgather(&here, sizeof here, handles.byte, places, sizeof here, handles.byte,
                   handles.world);
    find_leaders(places, rank, size);
    free(places);
    if (leader_count == 0)
        return;
    pmpi.Comm_dup(handles.world, &ours);
    tell_first_host(rank);
    exchange("init", rank);
}

void clocks_end(int rank)
{
    if (leader_count == 0)
        return;
    exchange("finalize", rank);
    pmpi.Comm_free(&ours);
}
