/* Every collective operation, blocking and nonblocking, on MPI_COMM_WORLD and an intercommunicator.
 * Notes: [name, bytes sent, bytes received, whether root]. */
#include "counting.h"

#define MOST 16
#define NOTED(name, sent, received, root)                                                         \
    noted("[\"%s\",%ld,%ld,%d]", #name, (long)(sent), (long)(received), (int)(root))

/* Both forms of a call: the nonblocking one is waited for. */
#define BOTH(name, iname, sent, received, root, ...)                                              \
    do {                                                                                          \
        CALL(name, __VA_ARGS__);                                                                  \
        NOTED(name, sent, received, root);                                                        \
        MPI_Request request;                                                                      \
        CALL(iname, __VA_ARGS__, &request);                                                       \
        NOTED(iname, sent, received, root);                                                       \
        CALL(Wait, &request, MPI_STATUS_IGNORE);                                                  \
    } while (0)

static int out[1000], in[1000];
static int counts[MOST], places[MOST];
static MPI_Datatype types[MOST];

static void of_all(MPI_Comm comm, int rank, int size)
{
    int all = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = i + 1;
        places[i] = all;
        all += counts[i];
    }
    int mine = 4 * counts[rank];
    BOTH(Barrier, Ibarrier, 0, 0, 0, comm);
    BOTH(Allreduce, Iallreduce, 40, 40, 0, out, in, 10, MPI_INT, MPI_SUM, comm);
    BOTH(Scan, Iscan, 40, 40, 0, out, in, 10, MPI_INT, MPI_SUM, comm);
    BOTH(Exscan, Iexscan, 40, 40, 0, out, in, 10, MPI_INT, MPI_SUM, comm);
    BOTH(Reduce_scatter, Ireduce_scatter, 4 * all, mine, 0, out, in, counts, MPI_INT, MPI_SUM,
         comm);
    BOTH(Reduce_scatter_block, Ireduce_scatter_block, 12 * size, 12, 0, out, in, 3, MPI_INT,
         MPI_SUM, comm);
    BOTH(Allgather, Iallgather, 20, 20 * size, 0, out, 5, MPI_INT, in, 5, MPI_INT, comm);
    BOTH(Allgatherv, Iallgatherv, mine, 4 * all, 0, out, counts[rank], MPI_INT, in, counts, places,
         MPI_INT, comm);
    BOTH(Alltoall, Ialltoall, 24, 24 * size, 0, out, 6, MPI_INT, in, 6, MPI_INT, comm);

    /* To rank i as many as both ranks together are. */
    int n[MOST], at[MOST], bytes[MOST], sum = 0;
    for (int i = 0; i < size; i++) {
        n[i] = rank + i;
        at[i] = sum;
        bytes[i] = 4 * sum;
        sum += n[i];
        types[i] = MPI_INT;
    }
    BOTH(Alltoallv, Ialltoallv, 4 * sum, 4 * sum, 0, out, n, at, MPI_INT, in, n, at, MPI_INT, comm);
    BOTH(Alltoallw, Ialltoallw, 4 * sum, 4 * sum, 0, out, n, bytes, types, in, n, bytes, types,
         comm);
    for (int i = 0; i < size; i++)
        n[i] = 0, types[i] = MPI_INT;
    BOTH(Alltoallw, Ialltoallw, 0, 0, 0, out, n, bytes, types, in, n, bytes, types, comm);
}

static void with_root(MPI_Comm comm, int rank, int size)
{
    for (int root = 0; root < size; root++) {
        int all = 0, r = rank == root;
        for (int i = 0; i < size; i++) {
            counts[i] = i + 1;
            places[i] = all;
            all += counts[i];
        }
        int mine = counts[rank];
        /* What has a meaning on the root only is nonsense on the others. */
        int *root_counts = r ? counts : NULL, *root_places = r ? places : NULL;
        MPI_Datatype root_type = r ? MPI_INT : MPI_DATATYPE_NULL;
        BOTH(Bcast, Ibcast, r ? 40 : 0, r ? 0 : 40, r, out, 10, MPI_INT, root, comm);
        BOTH(Reduce, Ireduce, r ? 0 : 40, r ? 40 : 0, r, out, in, 10, MPI_INT, MPI_SUM, root, comm);
        BOTH(Gather, Igather, 20, r ? 20 * size : 0, r, out, 5, MPI_INT, in, r ? 5 : -1, root_type,
             root, comm);
        BOTH(Gatherv, Igatherv, 4 * mine, r ? 4 * all : 0, r, out, mine, MPI_INT, in, root_counts,
             root_places, root_type, root, comm);
        BOTH(Scatter, Iscatter, r ? 20 * size : 0, 20, r, out, r ? 5 : -1, root_type, in, 5,
             MPI_INT, root, comm);
        BOTH(Scatterv, Iscatterv, r ? 4 * all : 0, 4 * mine, r, out, root_counts, root_places,
             root_type, in, mine, MPI_INT, root, comm);
    }
}

static void in_place(MPI_Comm comm, int rank, int size)
{
    int all = 0, root = rank == 0;
    for (int i = 0; i < size; i++) {
        counts[i] = i + 1;
        places[i] = all;
        all += counts[i];
    }
    void *here = MPI_IN_PLACE;
    MPI_Datatype none = MPI_DATATYPE_NULL;
    BOTH(Allreduce, Iallreduce, 40, 40, 0, here, in, 10, MPI_INT, MPI_SUM, comm);
    BOTH(Allgather, Iallgather, 20, 20 * size, 0, here, 0, none, in, 5, MPI_INT, comm);
    BOTH(Allgatherv, Iallgatherv, 4 * counts[rank], 4 * all, 0, here, 0, none, in, counts, places,
         MPI_INT, comm);
    BOTH(Alltoall, Ialltoall, 24, 24 * size, 0, here, 0, none, in, 6, MPI_INT, comm);
    if (root) {
        BOTH(Reduce, Ireduce, 0, 40, 1, here, in, 10, MPI_INT, MPI_SUM, 0, comm);
        BOTH(Gather, Igather, 20, 20 * size, 1, here, 0, none, in, 5, MPI_INT, 0, comm);
        BOTH(Gatherv, Igatherv, 4, 4 * all, 1, here, 0, none, in, counts, places, MPI_INT, 0, comm);
        BOTH(Scatter, Iscatter, 20 * size, 20, 1, out, 5, MPI_INT, here, 0, none, 0, comm);
        BOTH(Scatterv, Iscatterv, 4 * all, 4, 1, out, counts, places, MPI_INT, here, 0, none, 0,
             comm);
    } else {
        BOTH(Reduce, Ireduce, 40, 0, 0, out, in, 10, MPI_INT, MPI_SUM, 0, comm);
        BOTH(Gather, Igather, 20, 0, 0, out, 5, MPI_INT, NULL, 0, none, 0, comm);
        BOTH(Gatherv, Igatherv, 4 * counts[rank], 0, 0, out, counts[rank], MPI_INT, NULL, NULL,
             NULL, none, 0, comm);
        BOTH(Scatter, Iscatter, 0, 20, 0, NULL, 0, none, in, 5, MPI_INT, 0, comm);
        BOTH(Scatterv, Iscatterv, 0, 4 * counts[rank], 0, NULL, NULL, NULL, none, in, counts[rank],
             MPI_INT, 0, comm);
    }
}

/* Rank 0 is one group, the others are the other one. */
static void between_groups(void)
{
    MPI_Comm group, pair;
    int alone = me == 0, partners = alone ? ranks - 1 : 1;
    CALL(Comm_split, MPI_COMM_WORLD, alone, me, &group);
    CALL(Intercomm_create, group, 0, MPI_COMM_WORLD, alone ? 1 : 0, 77, &pair);
    BOTH(Allgather, Iallgather, 20, 20 * partners, 0, out, 5, MPI_INT, in, 5, MPI_INT, pair);
    BOTH(Alltoall, Ialltoall, 24, 24 * partners, 0, out, 6, MPI_INT, in, 6, MPI_INT, pair);
    BOTH(Allreduce, Iallreduce, 40, 40, 0, out, in, 10, MPI_INT, MPI_SUM, pair);
    if (alone) {
        BOTH(Bcast, Ibcast, 40, 0, 1, out, 10, MPI_INT, MPI_ROOT, pair);
        BOTH(Gather, Igather, 0, 20 * partners, 1, NULL, 0, MPI_INT, in, 5, MPI_INT, MPI_ROOT,
             pair);
        BOTH(Scatter, Iscatter, 20 * partners, 0, 1, out, 5, MPI_INT, NULL, 0, MPI_INT, MPI_ROOT,
             pair);
    } else {
        BOTH(Bcast, Ibcast, 0, 40, 0, in, 10, MPI_INT, 0, pair);
        BOTH(Gather, Igather, 20, 0, 0, out, 5, MPI_INT, NULL, 0, MPI_INT, 0, pair);
        BOTH(Scatter, Iscatter, 0, 20, 0, NULL, 0, MPI_INT, in, 5, MPI_INT, 0, pair);
    }
    /* The second group sends to rank 0: its first rank is the root, the others look on. */
    if (alone)
        BOTH(Bcast, Ibcast, 0, 40, 0, in, 10, MPI_INT, 0, pair);
    else if (me == 1)
        BOTH(Bcast, Ibcast, 40, 0, 1, out, 10, MPI_INT, MPI_ROOT, pair);
    else
        BOTH(Bcast, Ibcast, 0, 0, 0, out, 10, MPI_INT, MPI_PROC_NULL, pair);
    CALL(Comm_free, &pair);
    CALL(Comm_free, &group);
}

/* What goes down a dimension comes from above, also where both neighbours are one process. */
#define DOWN (-2)
#define UP (-3)

/* Each sends `own` bytes down and twice as many up. */
static void on_ring(long own, long of_left, long of_right)
{
    int left = (me + ranks - 1) % ranks, right = (me + 1) % ranks;
    sent(left, DOWN, own);
    sent(right, UP, 2 * own);
    received(left, UP, 2 * of_left);
    received(right, DOWN, of_right);
}

static void with_neighbours(void)
{
    MPI_Comm ring, line, arrows;
    MPI_Request request;
    int left = (me + ranks - 1) % ranks, right = (me + 1) % ranks;
    int yes = 1, no = 0, places[2] = {0, 500};
    MPI_Aint far[2] = {0, 2000};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    int own[2] = {me + 1, 2 * (me + 1)}, others[2] = {2 * (left + 1), right + 1};
    CALL(Cart_create, MPI_COMM_WORLD, 1, &ranks, &yes, 0, &ring);
    for (int i = 0; i < 3; i++) {
        sent(left, DOWN, 4), sent(right, UP, 4), received(left, UP, 4), received(right, DOWN, 4);
        if (i < 2)
            on_ring(4 * (me + 1), 4 * (left + 1), 4 * (right + 1));
    }
    CALL(Neighbor_allgather, out, 1, MPI_INT, in, 1, MPI_INT, ring);
    CALL(Neighbor_alltoall, out, 1, MPI_INT, in, 1, MPI_INT, ring);
    CALL(Ineighbor_alltoall, out, 1, MPI_INT, in, 1, MPI_INT, ring, &request);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    CALL(Neighbor_alltoallv, out, own, places, MPI_INT, in, others, places, MPI_INT, ring);
    CALL(Neighbor_alltoallw, out, own, far, types, in, others, far, types, ring);
#if MPI_VERSION >= 4
    CALL(Neighbor_alltoall_init, out, 1, MPI_INT, in, 1, MPI_INT, ring, MPI_INFO_NULL, &request);
    for (int i = 0; i < 2; i++) {
        sent(left, DOWN, 4), sent(right, UP, 4), received(left, UP, 4), received(right, DOWN, 4);
        CALL(Start, &request);
        CALL(Wait, &request, MPI_STATUS_IGNORE);
    }
    CALL(Request_free, &request);
#endif
    CALL(Comm_free, &ring);

    CALL(Cart_create, MPI_COMM_WORLD, 1, &ranks, &no, 0, &line);
    if (me > 0)
        sent(left, DOWN, 8), received(left, UP, 8);
    if (me < ranks - 1)
        sent(right, UP, 8), received(right, DOWN, 8);
    CALL(Neighbor_alltoall, out, 2, MPI_INT, in, 2, MPI_INT, line);
    CALL(Comm_free, &line);

    /* Each sends to the right only, as often as it has said. */
    int twice_left[2] = {left, left}, twice_right[2] = {right, right}, counts[2] = {3, 3};
    CALL(Dist_graph_create_adjacent, MPI_COMM_WORLD, 2, twice_left, MPI_UNWEIGHTED, 2, twice_right,
         MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &arrows);
    for (int i = 0; i < 2; i++)
        sent(right, DOWN, 12), received(left, DOWN, 12);
    CALL(Neighbor_allgatherv, out, 3, MPI_INT, in, counts, places, MPI_INT, arrows);
    CALL(Comm_free, &arrows);
}

/* Complete at once where there is one process only: all of them may have one handle. */
static void several(void)
{
    MPI_Request requests[3];
    for (int i = 0; i < 3; i++) {
        CALL(Iallreduce, out, in + 10 * i, 10, MPI_INT, MPI_SUM, MPI_COMM_SELF, &requests[i]);
        NOTED(Iallreduce, 40, 40, 0);
    }
    CALL(Waitall, 3, requests, MPI_STATUSES_IGNORE);
}

int main(int count, char **arguments)
{
    begin(&count, &arguments);
    of_all(MPI_COMM_WORLD, me, ranks);
    of_all(MPI_COMM_SELF, 0, 1);
    several();
    with_root(MPI_COMM_WORLD, me, ranks);
    in_place(MPI_COMM_WORLD, me, ranks);
    between_groups();
    with_neighbours();
    end();
    return 0;
}
