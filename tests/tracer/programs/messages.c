/* Every way to send and to receive, between two ranks, to oneself and to nobody. */
#include "counting.h"

static int other;
static int data[1000], room[1000];

/* Each mode of sending, nonblocking and not; the receiver takes them with and without wildcards. */
static void modes(void)
{
    static char attached[100000];
    CALL(Buffer_attach, attached, sizeof attached);
    MPI_Request requests[8];
    int n = 0;
    for (int tag = 1; tag <= 6; tag++, n++)
        CALL(Irecv, room + 10 * tag, 10, MPI_INT, tag % 2 ? other : MPI_ANY_SOURCE,
             tag, MPI_COMM_WORLD, &requests[n]);
    CALL(Barrier, MPI_COMM_WORLD); /* receives are posted: the ready mode may be used */
    CALL(Send, data, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
    CALL(Bsend, data, 2, MPI_INT, other, 2, MPI_COMM_WORLD);
    CALL(Rsend, data, 3, MPI_INT, other, 3, MPI_COMM_WORLD);
    CALL(Isend, data, 4, MPI_INT, other, 4, MPI_COMM_WORLD, &requests[6]);
    CALL(Wait, &requests[6], MPI_STATUS_IGNORE);
    CALL(Ibsend, data, 5, MPI_INT, other, 5, MPI_COMM_WORLD, &requests[6]);
    CALL(Irsend, data, 6, MPI_INT, other, 6, MPI_COMM_WORLD, &requests[7]);
    CALL(Waitall, 8, requests, MPI_STATUSES_IGNORE);
    for (int tag = 1; tag <= 6; tag++) {
        sent(other, tag, 4 * tag);
        received(other, tag, 4 * tag);
    }
    void *gone;
    int size;
    CALL(Buffer_detach, &gone, &size);

    /* Synchronous ones, in turn. */
    MPI_Request request;
    CALL(Irecv, room, 10, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    CALL(Ssend, data, 7, MPI_INT, other, 7, MPI_COMM_WORLD);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    CALL(Issend, data, 8, MPI_INT, other, 8, MPI_COMM_WORLD, &request);
    CALL(Recv, room, 10, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    for (int tag = 7; tag <= 8; tag++) {
        sent(other, tag, 4 * tag);
        received(other, tag, 4 * tag);
    }
}

static void both_at_once(void)
{
    MPI_Status status;
    CALL(Sendrecv, data, 9, MPI_INT, other, 20, room, 100, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
         MPI_COMM_WORLD, &status);
    CALL(Sendrecv_replace, data, 10, MPI_INT, other, 21, other, 21, MPI_COMM_WORLD,
         MPI_STATUS_IGNORE);
    sent(other, 20, 36);
    received(other, 20, 36);
    sent(other, 21, 40);
    received(other, 21, 40);
    /* To the one, from nobody. */
    if (me == 0) {
        CALL(Sendrecv, data, 1, MPI_INT, other, 22, NULL, 0, MPI_INT, MPI_PROC_NULL, 22,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sent(other, 22, 4);
    } else {
        CALL(Sendrecv, NULL, 0, MPI_INT, MPI_PROC_NULL, 22, room, 1, MPI_INT, other, 22,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        received(other, 22, 4);
    }
#ifdef HAVE_ISENDRECV
    MPI_Request requests[2];
    CALL(Isendrecv, data, 3, MPI_INT, other, 23, room, 3, MPI_INT, other, 23, MPI_COMM_WORLD,
         &requests[0]);
    CALL(Isendrecv_replace, data, 4, MPI_INT, other, 24, other, 24, MPI_COMM_WORLD, &requests[1]);
    CALL(Waitall, 2, requests, MPI_STATUSES_IGNORE);
    sent(other, 23, 12);
    received(other, 23, 12);
    sent(other, 24, 16);
    received(other, 24, 16);
#endif
}

/* Zero bytes, oneself, nobody, types of one's own. */
static void odd_ones(void)
{
    MPI_Request request;
    CALL(Irecv, NULL, 0, MPI_INT, other, 30, MPI_COMM_WORLD, &request);
    CALL(Send, NULL, 0, MPI_INT, other, 30, MPI_COMM_WORLD);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    sent(other, 30, 0);
    received(other, 30, 0);

    CALL(Irecv, room, 5, MPI_INT, me, 31, MPI_COMM_WORLD, &request);
    CALL(Send, data, 5, MPI_INT, me, 31, MPI_COMM_WORLD);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    sent(me, 31, 20);
    received(me, 31, 20);
    CALL(Irecv, room, 5, MPI_INT, 0, 32, MPI_COMM_SELF, &request);
    CALL(Send, data, 5, MPI_INT, 0, 32, MPI_COMM_SELF);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    sent(me, 32, 20);
    received(me, 32, 20);

    CALL(Send, data, 5, MPI_INT, MPI_PROC_NULL, 33, MPI_COMM_WORLD);
    CALL(Recv, room, 5, MPI_INT, MPI_PROC_NULL, 33, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(Irecv, room, 5, MPI_INT, MPI_PROC_NULL, 33, MPI_COMM_WORLD, &request);
    CALL(Wait, &request, MPI_STATUS_IGNORE);

    /* Every second of 20 numbers, by an absolute address. */
    MPI_Datatype every_second, placed;
    MPI_Aint at;
    int one = 1;
    MPI_Type_vector(10, 1, 2, MPI_INT, &every_second);
    MPI_Get_address(data, &at);
    MPI_Type_create_struct(1, &one, &at, &every_second, &placed);
    MPI_Type_commit(&placed);
    CALL(Irecv, room, 20, MPI_INT, other, 34, MPI_COMM_WORLD, &request);
    CALL(Send, MPI_BOTTOM, 1, placed, other, 34, MPI_COMM_WORLD);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    MPI_Type_free(&placed);
    MPI_Type_free(&every_second);
    sent(other, 34, 40);
    received(other, 34, 40);
}

/* Found before they are received. */
static void probes(void)
{
    MPI_Request request;
    MPI_Message found;
    MPI_Status status;
    int flag = 0;
    for (int tag = 40; tag < 44; tag++) {
        CALL(Isend, data, tag, MPI_INT, other, tag, MPI_COMM_WORLD, &request);
        CALL(Request_free, &request);
        sent(other, tag, 4 * tag);
        received(other, tag, 4 * tag);
    }
    CALL(Probe, MPI_ANY_SOURCE, 40, MPI_COMM_WORLD, &status);
    CALL(Recv, room, 100, MPI_INT, status.MPI_SOURCE, 40, MPI_COMM_WORLD, &status);
    while (!flag)
        CALL(Iprobe, other, 41, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CALL(Recv, room, 100, MPI_INT, other, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(Mprobe, MPI_ANY_SOURCE, 42, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    CALL(Mrecv, room, 100, MPI_INT, &found, MPI_STATUS_IGNORE);
    flag = 0;
    while (!flag)
        CALL(Improbe, other, 43, MPI_COMM_WORLD, &flag, &found, &status);
    CALL(Imrecv, room, 100, MPI_INT, &found, &request);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    CALL(Mprobe, MPI_PROC_NULL, 44, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    CALL(Mrecv, room, 100, MPI_INT, &found, MPI_STATUS_IGNORE);
}

static void persistent(void)
{
    MPI_Request requests[7];
    CALL(Recv_init, room, 100, MPI_INT, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &requests[0]);
    CALL(Recv_init, room + 100, 100, MPI_INT, other, 51, MPI_COMM_WORLD, &requests[1]);
    CALL(Recv_init, room + 200, 100, MPI_INT, other, 52, MPI_COMM_WORLD, &requests[2]);
    CALL(Send_init, data, 50, MPI_INT, other, 50, MPI_COMM_WORLD, &requests[3]);
    CALL(Rsend_init, data, 51, MPI_INT, other, 51, MPI_COMM_WORLD, &requests[4]);
    CALL(Ssend_init, data, 52, MPI_INT, other, 52, MPI_COMM_WORLD, &requests[5]);
    CALL(Send_init, data, 52, MPI_INT, MPI_PROC_NULL, 52, MPI_COMM_WORLD, &requests[6]);
    for (int round = 0; round < 3; round++) {
        CALL(Start, &requests[0]);
        CALL(Startall, 2, requests + 1);
        CALL(Barrier, MPI_COMM_WORLD);
        CALL(Startall, 4, requests + 3);
        CALL(Waitall, 7, requests, MPI_STATUSES_IGNORE);
        CALL(Waitall, 7, requests, MPI_STATUSES_IGNORE); /* all are inactive: nothing happens */
        for (int tag = 50; tag <= 52; tag++) {
            sent(other, tag, 4 * tag);
            received(other, tag, 4 * tag);
        }
    }
    for (int i = 0; i < 7; i++)
        CALL(Request_free, &requests[i]);
}

/* A receive that never gets a message, and one behind it that does. */
static void cancelled(void)
{
    MPI_Request request;
    MPI_Status status;
    int flag;
    CALL(Irecv, room, 1, MPI_INT, other, 60, MPI_COMM_WORLD, &request);
    CALL(Cancel, &request);
    CALL(Wait, &request, &status);
    MPI_Test_cancelled(&status, &flag);
    noted("%d", flag);
    CALL(Barrier, MPI_COMM_WORLD);
    CALL(Irecv, room, 1, MPI_INT, other, 60, MPI_COMM_WORLD, &request);
    CALL(Send, data, 1, MPI_INT, other, 60, MPI_COMM_WORLD);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    sent(other, 60, 4);
    received(other, 60, 4);
}

/* A message that is longer than the buffer is received, in part, and the call fails. */
static void truncated(void)
{
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CALL(Isend, data, 100, MPI_INT, me, 70, MPI_COMM_WORLD, &request);
    count_call("Recv");
    int result = MPI_Recv(room, 10, MPI_INT, me, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE), class;
    MPI_Error_class(result, &class);
    noted("%d", class == MPI_ERR_TRUNCATE);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    message("sent", me, 70, 400);
}

/* To a rank that does not exist: the call fails, the program goes on, and there is no message. */
static void to_a_wrong_rank(void)
{
    int class;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    count_call("Send");
    MPI_Error_class(MPI_Send(data, 1, MPI_INT, 1000, 80, MPI_COMM_WORLD), &class);
    noted("%d", class == MPI_ERR_RANK);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int count, char **arguments)
{
    begin(&count, &arguments);
    other = 1 - me;
    modes();
    both_at_once();
    odd_ones();
    probes();
    persistent();
    cancelled();
    truncated();
    to_a_wrong_rank();
    end();
    return 0;
}
