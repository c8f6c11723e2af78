/* Threads that send and receive at the same time, on a communicator each and on one for all. */
#include "counting.h"

#include <pthread.h>

#define THREADS 4
#define MESSAGES 200

static MPI_Comm own[THREADS];

static void *communicate(void *number)
{
    int n = (int)(long)number, other = 1 - me, data[64] = {0}, room[64], flag;
    MPI_Request requests[2];
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Irecv(room, 64, MPI_INT, MPI_ANY_SOURCE, i, own[n], &requests[0]);
        MPI_Isend(data, i % 64, MPI_INT, other, i, own[n], &requests[1]);
        if (i % 3)
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        else
            do
                MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
            while (!flag);
        if (i % 10 == 0)
            MPI_Sendrecv(data, 1, MPI_INT, other, MESSAGES + n, room, 1, MPI_INT, other,
                         MESSAGES + n, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (i % 100 == 0) {
            MPI_Request many[20];
            for (int k = 0; k < 10; k++) {
                MPI_Irecv(room + k, 1, MPI_INT, other, k, own[n], &many[k]);
                MPI_Isend(data, 1, MPI_INT, other, k, own[n], &many[10 + k]);
            }
            for (int k = 0, index; k < 20; k++)
                MPI_Waitany(20, many, &index, MPI_STATUS_IGNORE);
        }
    }
    return NULL;
}

int main(int count, char **arguments)
{
    int provided;
    CALL(Init_thread, &count, &arguments, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (provided != MPI_THREAD_MULTIPLE) {
        fputs("no MPI_THREAD_MULTIPLE\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    pthread_t threads[THREADS];
    for (int n = 0; n < THREADS; n++)
        CALL(Comm_dup, MPI_COMM_WORLD, &own[n]);
    for (long n = 0; n < THREADS; n++)
        pthread_create(&threads[n], NULL, communicate, (void *)n);
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], NULL);
    for (int n = 0; n < THREADS; n++)
        CALL(Comm_free, &own[n]);
    for (int n = 0; n < THREADS; n++)
        for (int i = 0; i < MESSAGES; i++) {
            sent(1 - me, i, 4 * (i % 64));
            received(1 - me, i, 4 * (i % 64));
            if (i % 10 == 0) {
                sent(1 - me, MESSAGES + n, 4);
                received(1 - me, MESSAGES + n, 4);
            }
            for (int k = 0; k < 10 && i % 100 == 0; k++) {
                sent(1 - me, k, 4);
                received(1 - me, k, 4);
            }
        }
    end();
    return 0;
}
