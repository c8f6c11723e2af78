/* Messages between pairs of ranks: latency, overheads, gap, bandwidth and protocol.
 *
 *   ping_pong bytes=B tier=T
 *        messages to and fro; one operation is half of a round trip
 *   send_overhead bytes=B tier=T
 *        o_s: time in MPI_Isend, with one message under way at a time
 *   receive_overhead bytes=B tier=T
 *        o_r: time in MPI_Recv for a message that is already there
 *   train bytes=B count=N tier=T
 *        N messages one behind the other with MPI_Send, then one answer; one operation is the
 *        whole train
 *   window bytes=B tier=T pairs=K direction=one|both
 *        64 messages in flight (fewer long ones: 16 MiB, but at least 4), then one answer, by K
 *        pairs at once; one operation is a window of all pairs, "moved" its bytes in all directions
 *   late_receiver bytes=B tier=T delay=S [progress=1]
 *        time in MPI_Send while the receiver stays away for S seconds, out of MPI as in a
 *        computation; with progress=1, in MPI but with no receive posted. Short if the message is
 *        sent eagerly, S if by rendezvous. Short with progress=1 only: eager, but through a buffer
 *        that the library gets back from the receiver
 *
 * The tier is where the two ranks of a pair are: near on one socket, node on two sockets of a
 * node (on one node where it has only one), network on two nodes.
 *
 * Overheads and gaps are those of the LogP family (LogP: Culler et al. 1993; long messages:
 * Alexandrov et al. 1995; overheads that depend on the size: Kielmann et al. 2000); ping-pong and
 * windows are what the public MPI benchmark suites understand by latency and bandwidth.
 *
 * Clocks of two ranks are never compared: every time is the difference of two readings on one rank,
 * and what the other rank does meanwhile is fixed by messages. Buffers are touched before the first
 * batch, and no two receives of a window share memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "clock.h"
#include "mpi_jobs.h"
#include "party.h"

enum { DATA = 1, ANSWER, FLAG };

/* Fewer long messages than short ones keep the way busy; more would take memory without need. */
enum { IN_FLIGHT = 64, LEAST_IN_FLIGHT = 4 };
static const long WINDOW_BYTES = 16L << 20;

/* Within this time a receiver that was told to go is out of MPI. */
static const double HEAD_START = 20e-6;

struct pair {
    MPI_Comm comm;
    int rank;
    int partner;
    int bytes;
    int count;    /* messages in a train or a window */
    int both;     /* a window in both directions */
    double delay; /* of a late receiver, seconds */
    int progress; /* a late receiver is in MPI meanwhile */
    double clock; /* cost of the clock around one call */
    char *out;
    char *in;
    MPI_Request *requests;
};

static struct pair open_pair(const struct party *party, const struct job *job, long in_buffers)
{
    struct pair p = {.comm = party->comm, .rank = party->rank, .partner = party->rank ^ 1};
    p.bytes = (int)job_integer(job, "bytes", 0);
    p.out = touched((size_t)p.bytes);
    p.in = touched((size_t)p.bytes * (size_t)in_buffers);
    p.clock = clock_share();
    return p;
}

static void close_pair(struct pair *p)
{
    free(p->out);
    free(p->in);
    free(p->requests);
}

static void send_data(const struct pair *p)
{
    MPI_Send(p->out, p->bytes, MPI_BYTE, p->partner, DATA, p->comm);
}

static void receive_data(const struct pair *p)
{
    MPI_Recv(p->in, p->bytes, MPI_BYTE, p->partner, DATA, p->comm, MPI_STATUS_IGNORE);
}

static void send_empty(const struct pair *p, int tag)
{
    MPI_Send(NULL, 0, MPI_BYTE, p->partner, tag, p->comm);
}

static void receive_empty(const struct pair *p, int tag)
{
    MPI_Recv(NULL, 0, MPI_BYTE, p->partner, tag, p->comm, MPI_STATUS_IGNORE);
}

/* One operation is half a round trip. */
static double ping_pong_batch(void *state, long inner)
{
    const struct pair *p = state;
    MPI_Barrier(p->comm);
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
        if (p->rank == 0) {
            send_data(p);
            receive_data(p);
        } else {
            receive_data(p);
            send_data(p);
        }
    }
    return (clock_now() - start) / 2;
}

static struct result ping_pong(const struct party *party, const struct job *job)
{
    struct pair p = open_pair(party, job, 1);
    struct result result = {.batches = measure(&party->plan, ping_pong_batch, NULL, &p)};
    close_pair(&p);
    return result;
}

/* o_s: time in MPI_Isend. Every message is received and answered before the next is sent, so that
 * none finds the one before it still under way. */
static double send_overhead_batch(void *state, long inner)
{
    const struct pair *p = state;
    double inside = 0;
    MPI_Barrier(p->comm);
    for (long i = 0; i < inner; i++) {
        if (p->rank == 0) {
            MPI_Request request;
            double start = clock_now();
            MPI_Isend(p->out, p->bytes, MPI_BYTE, p->partner, DATA, p->comm, &request);
            inside += clock_now() - start;
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            receive_empty(p, ANSWER);
        } else {
            receive_data(p);
            send_empty(p, ANSWER);
        }
    }
    return inside - (double)inner * p->clock;
}

static struct result send_overhead(const struct party *party, const struct job *job)
{
    struct pair p = open_pair(party, job, 1);
    struct result result = {.batches = measure(&party->plan, send_overhead_batch, NULL, &p)};
    close_pair(&p);
    return result;
}

/* Away from the receive for so long: asleep, or in MPI with nothing posted. */
static void stay_away(const struct pair *p, double seconds)
{
    if (!p->progress) {
        sleep_for(seconds);
        return;
    }
    double until = clock_now() + seconds;
    while (clock_now() < until) {
        int there; /* always 0: nobody sends one before the receive */
        MPI_Iprobe(p->partner, ANSWER, p->comm, &there, MPI_STATUS_IGNORE);
    }
}

/* One late message; returns the seconds in MPI_Send on the sender. The flag tells the receiver to
 * go; the sender then gives it the time to be gone, because a library may still take in what
 * comes while it hands over the flag. */
static double send_late(const struct pair *p, int sender, double delay)
{
    double took = 0;
    if (sender) {
        send_empty(p, FLAG);
        for (double until = clock_now() + HEAD_START; clock_now() < until;)
            continue;
        double start = clock_now();
        send_data(p);
        took = clock_now() - start;
        receive_empty(p, ANSWER);
    } else {
        receive_empty(p, FLAG);
        stay_away(p, HEAD_START + delay);
        receive_data(p);
        send_empty(p, ANSWER);
    }
    return took;
}

static double late_batch(void *state, long inner)
{
    const struct pair *p = state;
    double inside = 0;
    MPI_Barrier(p->comm);
    for (long i = 0; i < inner; i++)
        inside += send_late(p, p->rank == 0, p->delay);
    return inside;
}

static struct result late_receiver(const struct party *party, const struct job *job)
{
    struct pair p = open_pair(party, job, 1);
    p.delay = job_seconds(job, "delay", 1e-3);
    p.progress = (int)job_integer(job, "progress", 0);
    /* One message is a batch: of an eager message, many would take as many delays to time. */
    struct plan plan = party->plan;
    plan.inner = 1;
    struct result result = {.batches = measure(&plan, late_batch, NULL, &p)};
    close_pair(&p);
    return result;
}

/* Does a message arrive, here from rank 1, before its receive is posted? Then MPI_Send returns
 * while the receiver has none posted but lets the library work. Most of a few trials decide:
 * disturbance may make an eager send long, or let a sender come later than its receiver. */
static int goes_eagerly(struct pair *p)
{
    enum { TRIALS = 5 };
    const double delay = 2e-3;
    int brief = 0;
    p->progress = 1;
    for (int i = 0; i < TRIALS; i++)
        brief += send_late(p, p->rank == 1, delay) < delay / 2;
    int eager = brief > TRIALS / 2;
    MPI_Bcast(&eager, 1, MPI_INT, 1, p->comm);
    return eager;
}

/* o_r: time in MPI_Recv for a message that is already there. The flag is sent behind the message
 * on the same way: when a probe sees it, all of the message has arrived. Rank 0 receives, for it
 * measures. Rank 1 sends without blocking: a message that does need its receiver must not keep the
 * flag back, for which the receiver waits. */
static double receive_overhead_batch(void *state, long inner)
{
    const struct pair *p = state;
    double inside = 0;
    MPI_Barrier(p->comm);
    for (long i = 0; i < inner; i++) {
        if (p->rank == 0) {
            MPI_Probe(p->partner, FLAG, p->comm, MPI_STATUS_IGNORE);
            double start = clock_now();
            receive_data(p);
            inside += clock_now() - start;
            receive_empty(p, FLAG);
            send_empty(p, ANSWER);
        } else {
            MPI_Request request;
            MPI_Isend(p->out, p->bytes, MPI_BYTE, p->partner, DATA, p->comm, &request);
            send_empty(p, FLAG);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            receive_empty(p, ANSWER);
        }
    }
    return inside - (double)inner * p->clock;
}

static struct result receive_overhead(const struct party *party, const struct job *job)
{
    struct result result = {0};
    struct pair p = open_pair(party, job, 1);
    if (goes_eagerly(&p))
        result.batches = measure(&party->plan, receive_overhead_batch, NULL, &p);
    else
        result = result_absent("a message of %d bytes uses rendezvous: it cannot arrive before its "
                               "receive is posted",
                               p.bytes);
    close_pair(&p);
    return result;
}

/* MPI_Send, as programs do: of rendezvous messages a train holds a handshake each. */
static double train_batch(void *state, long inner)
{
    const struct pair *p = state;
    MPI_Barrier(p->comm);
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
        if (p->rank == 0) {
            for (int k = 0; k < p->count; k++)
                send_data(p);
            receive_empty(p, ANSWER);
        } else {
            for (int k = 0; k < p->count; k++)
                receive_data(p);
            send_empty(p, ANSWER);
        }
    }
    return clock_now() - start;
}

static struct result train(const struct party *party, const struct job *job)
{
    struct pair p = open_pair(party, job, 1);
    p.count = (int)job_integer(job, "count", 16);
    struct result result = {.batches = measure(&party->plan, train_batch, NULL, &p)};
    close_pair(&p);
    return result;
}

static void post_window(const struct pair *p, int receive)
{
    for (int k = 0; k < p->count; k++) {
        if (receive) {
            MPI_Irecv(p->in + (size_t)k * (size_t)p->bytes, p->bytes, MPI_BYTE, p->partner, DATA,
                      p->comm, &p->requests[k]);
        } else {
            MPI_Isend(p->out, p->bytes, MPI_BYTE, p->partner, DATA, p->comm,
                      &p->requests[p->both ? p->count + k : k]);
        }
    }
}

/* One operation is a window of every pair. The slowest pair's time counts: what all move, they
 * have moved by then. */
static double window_batch(void *state, long inner)
{
    const struct pair *p = state;
    int sends = p->both || p->rank % 2 == 0;
    int receives = p->both || p->rank % 2 == 1;
    MPI_Barrier(p->comm);
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
        if (receives)
            post_window(p, 1);
        if (sends)
            post_window(p, 0);
        MPI_Waitall(p->count * (sends + receives), p->requests, MPI_STATUSES_IGNORE);
        /* With both directions the partner's next window is answer enough. */
        if (!receives) {
            receive_empty(p, ANSWER);
        } else if (!sends) {
            send_empty(p, ANSWER);
        }
    }
    double took = clock_now() - start;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, p->comm);
    return took;
}

static long window_count(long bytes)
{
    long count = bytes > 0 ? WINDOW_BYTES / bytes : IN_FLIGHT;
    count = count > IN_FLIGHT ? IN_FLIGHT : count;
    return count < LEAST_IN_FLIGHT ? LEAST_IN_FLIGHT : count;
}

static struct result window(const struct party *party, const struct job *job)
{
    long bytes = job_integer(job, "bytes", 0), count = window_count(bytes);
    struct pair p = open_pair(party, job, count);
    p.count = (int)count;
    p.both = strcmp(job_text(job, "direction", "one"), "both") == 0;
    p.requests = touched(2 * (size_t)count * sizeof *p.requests);
    struct result result = {.batches = measure(&party->plan, window_batch, NULL, &p)};
    result.moved = (double)bytes * (double)count * (party->size / 2) * (p.both ? 2 : 1);
    close_pair(&p);
    return result;
}

static struct result run_window(const struct job *job, const struct plan *plan, void *launch)
{
    long bytes = job_integer(job, "bytes", 0);
    return on_pairs(launch, job, plan, bytes * (1 + window_count(bytes)), window);
}

/* A buffer to send from and one to receive in. */
static long two_buffers(const struct job *job)
{
    return 2 * job_integer(job, "bytes", 0);
}

static struct result run_ping_pong(const struct job *job, const struct plan *plan, void *launch)
{
    return on_pairs(launch, job, plan, two_buffers(job), ping_pong);
}

static struct result run_send_overhead(const struct job *job, const struct plan *plan,
                                       void *launch)
{
    return on_pairs(launch, job, plan, two_buffers(job), send_overhead);
}

static struct result run_receive_overhead(const struct job *job, const struct plan *plan,
                                          void *launch)
{
    return on_pairs(launch, job, plan, two_buffers(job), receive_overhead);
}

static struct result run_train(const struct job *job, const struct plan *plan, void *launch)
{
    return on_pairs(launch, job, plan, two_buffers(job), train);
}

static struct result run_late_receiver(const struct job *job, const struct plan *plan,
                                       void *launch)
{
    return on_pairs(launch, job, plan, two_buffers(job), late_receiver);
}

static const char *const DIRECTIONS[] = {"one", "both", NULL};

static const struct key MESSAGE_KEYS[] = {BYTES_KEY, TIER_KEY, {0}};
static const struct key TRAIN_KEYS[] = {
    BYTES_KEY, TIER_KEY, {"count", INTEGER, 1, 1, 1000000, NULL}, {0}};
static const struct key WINDOW_KEYS[] = {BYTES_KEY,
                                         TIER_KEY,
                                         {"pairs", INTEGER, 1, 1, 1000000, NULL},
                                         {"direction", WORD, 1, 0, 0, DIRECTIONS},
                                         {0}};
static const struct key LATE_KEYS[] = {BYTES_KEY,
                                       TIER_KEY,
                                       {"delay", SECONDS, 1, 0, 0, NULL},
                                       {"progress", INTEGER, 0, 0, 1, NULL},
                                       {0}};

const struct job_kind point_to_point_jobs[] = {
    {"ping_pong", MESSAGE_KEYS, NULL, run_ping_pong},
    {"send_overhead", MESSAGE_KEYS, NULL, run_send_overhead},
    {"receive_overhead", MESSAGE_KEYS, NULL, run_receive_overhead},
    {"train", TRAIN_KEYS, NULL, run_train},
    {"window", WINDOW_KEYS, NULL, run_window},
    {"late_receiver", LATE_KEYS, NULL, run_late_receiver},
    {0},
};
