/* Every way to make a communicator, with a message in each; thousands that come and go.
 *
 * Each message has a tag of its own. The partner of a message is the next rank in the communicator,
 * or in the other group. */
#include "counting.h"

static int tag;

static int rank_in_world(MPI_Group group, int rank)
{
    MPI_Group world;
    int found;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(group, 1, &rank, world, &found);
    MPI_Group_free(&world);
    return found;
}

/* A message to the next and from the one before; what `name` is for: who is in it. */
static void use(MPI_Comm comm, const char *name)
{
    tag++;
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Group group, partners;
    int rank, size, is_inter, data = 0, room;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_test_inter(comm, &is_inter);
    MPI_Comm_group(comm, &group);
    if (is_inter)
        MPI_Comm_remote_group(comm, &partners);
    else
        partners = group;
    MPI_Group_size(partners, &size);
    int to = is_inter ? 0 : (rank + 1) % size, from = is_inter ? 0 : (rank + size - 1) % size;
    /* In an intercommunicator the first ranks of both groups exchange. */
    if (!is_inter || rank == 0) {
        MPI_Request request;
        CALL(Irecv, &room, 1, MPI_INT, from, tag, comm, &request);
        CALL(Send, &data, 1, MPI_INT, to, tag, comm);
        CALL(Wait, &request, MPI_STATUS_IGNORE);
        sent(rank_in_world(partners, to), tag, 4);
        received(rank_in_world(partners, from), tag, 4);
    }
    int members;
    MPI_Group_size(group, &members);
    char list[256] = "";
    for (int i = 0; i < members; i++)
        sprintf(list + strlen(list), "%s%d", i ? "," : "", rank_in_world(group, i));
    noted("[\"%s\",%d,[%s]]", name, tag, list);
    if (is_inter)
        MPI_Group_free(&partners);
    MPI_Group_free(&group);
}

static void use_and_free(MPI_Comm *comm, const char *name)
{
    use(*comm, name);
    if (*comm != MPI_COMM_NULL)
        CALL(Comm_free, comm);
}

int main(int count, char **arguments)
{
    begin(&count, &arguments);
    MPI_Comm made, other;
    MPI_Group all, odd;
    MPI_Request request;
    use(MPI_COMM_WORLD, "world");
    use(MPI_COMM_SELF, "self");
    CALL(Comm_dup, MPI_COMM_WORLD, &made);
    use(made, "dup");
    CALL(Comm_dup, made, &other);
    use_and_free(&other, "dup of dup");
    CALL(Comm_dup, MPI_COMM_WORLD, &other);
    use_and_free(&other, "second dup");
    use_and_free(&made, "dup again");
    CALL(Comm_dup_with_info, MPI_COMM_WORLD, MPI_INFO_NULL, &made);
    use_and_free(&made, "dup_with_info");
    CALL(Comm_idup, MPI_COMM_WORLD, &made, &request);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    use_and_free(&made, "idup");
    CALL(Comm_split, MPI_COMM_WORLD, me % 2, -me, &made); /* ranks in the reverse order */
    use(made, "split");
    CALL(Comm_dup, made, &other);
    use_and_free(&other, "dup of split");
    CALL(Comm_disconnect, &made);
    CALL(Comm_split, MPI_COMM_WORLD, me == 1 ? MPI_UNDEFINED : 0, me, &made);
    use_and_free(&made, "split with one left out");
    CALL(Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
    use_and_free(&made, "split_type");
    int one = 1, range[1][3] = {{1, ranks - 1, 2}};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_range_incl(all, 1, range, &odd);
    CALL(Comm_create, MPI_COMM_WORLD, odd, &made);
    use_and_free(&made, "create");
    made = MPI_COMM_NULL;
    if (me % 2)
        CALL(Comm_create_group, MPI_COMM_WORLD, odd, 5, &made);
    use_and_free(&made, "create_group");
    MPI_Group_free(&odd);
    MPI_Group_free(&all);
    int sizes[2] = {2, ranks / 2}, periods[2] = {0, 1}, kept[2] = {0, 1};
    CALL(Cart_create, MPI_COMM_WORLD, 2, sizes, periods, 0, &other);
    use(other, "cart_create");
    CALL(Cart_sub, other, kept, &made);
    use_and_free(&made, "cart_sub");
    use_and_free(&other, "cart again");
    int index[16], edges[16];
    for (int i = 0; i < ranks; i++) {
        index[i] = i + 1;
        edges[i] = (i + 1) % ranks;
    }
    CALL(Graph_create, MPI_COMM_WORLD, ranks, index, edges, 0, &made);
    use_and_free(&made, "graph_create");
    int next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
    CALL(Dist_graph_create, MPI_COMM_WORLD, 1, &me, &one, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
         &made);
    use_and_free(&made, "dist_graph_create");
    CALL(Dist_graph_create_adjacent, MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next,
         MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    use_and_free(&made, "dist_graph_create_adjacent");
    CALL(Comm_split, MPI_COMM_WORLD, me % 2, me, &made);
    CALL(Intercomm_create, made, 0, MPI_COMM_WORLD, me % 2 ? 0 : 1, 9, &other);
    CALL(Comm_free, &made);
    use(other, "intercomm_create");
    CALL(Intercomm_merge, other, me % 2, &made);
    use_and_free(&made, "intercomm_merge");
    use_and_free(&other, "intercomm again");

    /* A receive that is still pending when its communicator is freed. */
    int data = 0, room;
    CALL(Comm_dup, MPI_COMM_WORLD, &made);
    CALL(Irecv, &room, 1, MPI_INT, MPI_ANY_SOURCE, 1, made, &request);
    CALL(Send, &data, 1, MPI_INT, next, 1, made);
    CALL(Comm_free, &made);
    CALL(Comm_dup, MPI_COMM_WORLD, &other); /* may get the same handle */
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    CALL(Comm_free, &other);
    sent(next, 1, 4);
    received(before, 1, 4);

    for (int i = 0; i < 1100; i++) {
        CALL(Comm_split, MPI_COMM_WORLD, i % 3 == 0 ? 0 : me % 2, me, &made);
        if (i % 100 == 0)
            use(made, "one of many");
        CALL(Comm_free, &made);
    }
    end();
    return 0;
}
