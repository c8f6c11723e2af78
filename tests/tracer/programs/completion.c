/* Every way to complete requests, with and without statuses. */
#include "counting.h"

#define N 6

static int other, data[100], room[N][100];
static MPI_Request requests[N + 2]; /* one is null, one is an inactive persistent one */

/* N receives; the messages come in the reverse order of their posting. */
static void post(int base)
{
    for (int i = 0; i < N; i++)
        CALL(Irecv, room[i], 100, MPI_INT, i % 2 ? other : MPI_ANY_SOURCE, base + i, MPI_COMM_WORLD,
             &requests[i]);
    CALL(Barrier, MPI_COMM_WORLD);
    for (int i = N - 1; i >= 0; i--) {
        CALL(Send, data, i, MPI_INT, other, base + i, MPI_COMM_WORLD);
        sent(other, base + i, 4 * i);
        received(other, base + i, 4 * i);
    }
}

int main(int count, char **arguments)
{
    begin(&count, &arguments);
    other = 1 - me;
    int index, indices[N + 2], done, flag;
    MPI_Status status, statuses[N + 2];
    requests[N] = MPI_REQUEST_NULL;
    CALL(Recv_init, room, 1, MPI_INT, other, 999, MPI_COMM_WORLD, &requests[N + 1]);

    for (int ignores = 0; ignores < 2; ignores++) {
        MPI_Status *one = ignores ? MPI_STATUS_IGNORE : &status;
        MPI_Status *all = ignores ? MPI_STATUSES_IGNORE : statuses;
        int base = 1000 * (ignores + 1);
        post(base);
        for (int i = N - 1; i >= 0; i--)
            CALL(Wait, &requests[i], one);
        CALL(Wait, &requests[0], one); /* null by now */

        post(base + 100);
        CALL(Waitall, N + 2, requests, all);

        post(base + 200);
        do
            CALL(Waitany, N + 2, requests, &index, one);
        while (index != MPI_UNDEFINED);

        post(base + 300);
        do
            CALL(Waitsome, N + 2, requests, &done, indices, all);
        while (done != MPI_UNDEFINED);

        post(base + 400);
        for (int i = 0; i < N; i++)
            do
                CALL(Test, &requests[i], &flag, one);
            while (!flag);

        post(base + 500);
        do
            CALL(Testall, N + 2, requests, &flag, all);
        while (!flag);

        post(base + 600);
        do
            CALL(Testany, N + 2, requests, &index, &flag, one);
        while (!flag || index != MPI_UNDEFINED);

        post(base + 700);
        do
            CALL(Testsome, N + 2, requests, &done, indices, all);
        while (done != MPI_UNDEFINED);

        post(base + 800);
        for (int i = 0; i < N; i++) {
            do
                CALL(Request_get_status, requests[i], &flag, one);
            while (!flag);
            CALL(Wait, &requests[i], one);
        }
    }
    /* More at once than a thread keeps room for. */
    enum { MANY = 3000 };
    static MPI_Request many[2 * MANY];
    static int in[MANY];
    for (int i = 0; i < MANY; i++)
        CALL(Irecv, &in[i], 1, MPI_INT, other, 5, MPI_COMM_WORLD, &many[i]);
    for (int i = 0; i < MANY; i++)
        CALL(Isend, data, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &many[MANY + i]);
    CALL(Waitall, 2 * MANY, many, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++) {
        sent(other, 5, 4);
        received(other, 5, 4);
    }
    CALL(Request_free, &requests[N + 1]);
    end();
    return 0;
}
