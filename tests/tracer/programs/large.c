/* Calls with counts of type MPI_Count. */
#include "counting.h"

int main(int count, char **arguments)
{
    begin(&count, &arguments);
    int other = 1 - me, data[10] = {0}, room[10];
    count_call("Sendrecv");
    MPI_Sendrecv_c(data, 10, MPI_INT, other, 1, room, 10, MPI_INT, other, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    sent(other, 1, 40);
    received(other, 1, 40);
    MPI_Request requests[2];
    count_call("Irecv");
    MPI_Irecv_c(room, 5, MPI_INT, other, 2, MPI_COMM_WORLD, &requests[0]);
    count_call("Isend");
    MPI_Isend_c(data, 5, MPI_INT, other, 2, MPI_COMM_WORLD, &requests[1]);
    CALL(Waitall, 2, requests, MPI_STATUSES_IGNORE);
    sent(other, 2, 20);
    received(other, 2, 20);
    count_call("Allreduce");
    MPI_Allreduce_c(data, room, 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    noted("[\"Allreduce\",40,40,0]");
    end();
    return 0;
}
