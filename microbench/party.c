/* Ranks that measure and ranks that wait: see party.h. */
#define _POSIX_C_SOURCE 200809L
#include "party.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "machine_state.h"
#include "team.h"
#include "text.h"

/* Waiting ranks look this often: seldom enough to cost a core less than a thousandth of its time,
 * and longer from look to look while nothing happens. */
static const double FIRST_NAP = 20e-6, LONGEST_NAP = 2e-3;

enum { TAG = 1 };

void sleep_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    while (nanosleep(&left, &left) != 0)
        continue;
}

void *touched(size_t bytes)
{
    size_t size = bytes > 0 ? bytes : 1;
    void *block = aligned_reserve(size);
    if (!block) {
        fprintf(stderr,
                "popmodel-mpi: not enough memory for a buffer of %zu bytes; use smaller sizes or "
                "fewer ranks per node\n",
                size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memset(block, 0, size);
}

static long agree(void *party, long value)
{
    MPI_Bcast(&value, 1, MPI_LONG, 0, ((const struct party *)party)->comm);
    return value;
}

/* All ranks go on together, those who come first without spinning. */
static void meet(void)
{
    MPI_Request request;
    double nap = FIRST_NAP;
    int here;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &here, MPI_STATUS_IGNORE); !here;
         MPI_Test(&request, &here, MPI_STATUS_IGNORE)) {
        sleep_for(nap);
        nap = 2 * nap < LONGEST_NAP ? 2 * nap : LONGEST_NAP;
    }
}

/* The words of batch.h, to be told apart from rank to rank by their number. */
static const char *const STOPS[] = {"converged", "batches", "budget"};
enum { STOP_COUNT = sizeof STOPS / sizeof *STOPS };

/* What travels ahead of the batches. */
struct parcel {
    struct result result; /* its pointers mean nothing to the receiver */
    int has_reference, stopped;
};

static void send_result(const struct result *result)
{
    struct parcel parcel = {.result = *result, .has_reference = result->batches.reference != NULL};
    const struct batches *batches = &result->batches;
    while (batches->stopped && parcel.stopped < STOP_COUNT - 1 &&
           strcmp(batches->stopped, STOPS[parcel.stopped]) != 0)
        parcel.stopped++;
    MPI_Send(&parcel, (int)sizeof parcel, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    MPI_Send(batches->seconds, (int)batches->n, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
    if (parcel.has_reference)
        MPI_Send(batches->reference, (int)batches->n, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
}

static double *receive_times(long n, int from)
{
    double *times = memory_resize(NULL, (size_t)n * sizeof *times);
    MPI_Recv(times, (int)n, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return times;
}

static struct result receive_result(int from)
{
    struct parcel parcel;
    MPI_Recv(&parcel, (int)sizeof parcel, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    struct result result = parcel.result;
    long n = result.batches.n;
    result.batches.stopped = STOPS[parcel.stopped];
    result.batches.seconds = receive_times(n, from);
    result.batches.reference = parcel.has_reference ? receive_times(n, from) : NULL;
    return result;
}

/* Runs the job on the members, in their order; rank 0 of the launch gets the result. */
static struct result run(const struct launch *launch, const struct job *job,
                         const struct plan *plan, const int *members, int count, party_fn work)
{
    struct result result = {0};
    int member = 0;
    for (int i = 0; i < count; i++)
        member = member || members[i] == launch->rank;
    if (member) {
        struct party party = {.size = count, .plan = *plan};
        MPI_Group all, chosen;
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_incl(all, count, members, &chosen);
        MPI_Comm_create_group(MPI_COMM_WORLD, chosen, TAG, &party.comm);
        MPI_Comm_rank(party.comm, &party.rank);
        party.plan.agree = agree;
        party.plan.agree_with = &party;
        result = work(&party, job);
        MPI_Comm_free(&party.comm);
        MPI_Group_free(&chosen);
        MPI_Group_free(&all);
    }
    meet();
    if (members[0] != 0) {
        if (launch->rank == members[0])
            send_result(&result);
        else if (launch->rank == 0)
            result = receive_result(members[0]);
    }
    return result;
}

static struct result too_large(long bytes)
{
    return result_absent("its buffers need %ld MiB per rank, more than the limit of %ld MiB per job",
                         bytes >> 20, MEMORY_PER_RANK >> 20);
}

/* Processors in a list such as "0-3,2,8", each counted once. */
static long count_processors(const char *list)
{
    struct watch watch = watch_open(list);
    long count = watch.count;
    watch_close(&watch);
    return count;
}

/* Processors for the two ranks of a pair together: those either may use if they are on one node,
 * else twice those of the rank that has fewer. */
static long processors_of(const struct launch *launch, const int pair[2])
{
    const char *a = launch->cpus[pair[0]], *b = launch->cpus[pair[1]];
    if (launch->at[pair[0]].node != launch->at[pair[1]].node) {
        long of_a = count_processors(a), of_b = count_processors(b);
        return 2 * (of_a < of_b ? of_a : of_b);
    }
    struct text both = {0};
    text_add(&both, "%s,%s", a, b);
    long count = count_processors(both.at);
    text_free(&both);
    return count;
}

struct result on_pairs(const struct launch *launch, const struct job *job, const struct plan *plan,
                       long bytes, party_fn work)
{
    int pairs = (int)job_integer(job, "pairs", 1);
    long threads = job_integer(job, "threads", 0);
    if (bytes > MEMORY_PER_RANK)
        return too_large(bytes);
    if (pairs > launch->ranks / 2)
        return result_absent("%d pair%s of ranks requested, the launch has %d rank%s", pairs,
                             pairs == 1 ? "" : "s", launch->ranks, launch->ranks == 1 ? "" : "s");
    int *members = memory_resize(NULL, 2 * (size_t)pairs * sizeof *members);
    enum tier tier = tier_named(job_text(job, "tier", TIERS[NEAR]));
    const char *why = choose_pairs(launch->at, launch->ranks, tier, pairs, members);
    struct result result;
    if (why)
        result = result_absent("%s", why);
    else if (2 * threads > processors_of(launch, members))
        result = result_absent("2 ranks with %ld threads each, but they may use %ld CPUs",
                               threads, processors_of(launch, members));
    else
        result = run(launch, job, plan, members, 2 * pairs, work);
    free(members);
    return result;
}

struct result on_first(const struct launch *launch, const struct job *job, const struct plan *plan,
                       int count, long bytes, party_fn work)
{
    if (count > launch->ranks)
        return result_absent("%d ranks requested, the launch has %d", count, launch->ranks);
    if (bytes > MEMORY_PER_RANK)
        return too_large(bytes);
    int *members = memory_resize(NULL, (size_t)count * sizeof *members);
    for (int r = 0; r < count; r++)
        members[r] = r;
    struct result result = run(launch, job, plan, members, count, work);
    free(members);
    return result;
}
