/* Calls of which only the time is recorded: one-sided communication and files. */
#include "counting.h"

int main(int count, char **arguments)
{
    begin(&count, &arguments);
    int other = (me + 1) % ranks, memory[100] = {0}, data[100] = {0}, *allocated, result;
    MPI_Win window, second;
    CALL(Win_create, memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    CALL(Win_fence, 0, window);
    CALL(Put, data, 10, MPI_INT, other, 0, 10, MPI_INT, window);
    CALL(Win_fence, 0, window);
    CALL(Get, data, 10, MPI_INT, other, 0, 10, MPI_INT, window);
    CALL(Win_fence, 0, window);
    CALL(Accumulate, data, 10, MPI_INT, other, 0, 10, MPI_INT, MPI_SUM, window);
    CALL(Win_fence, 0, window);
    CALL(Win_lock, MPI_LOCK_EXCLUSIVE, other, 0, window);
    CALL(Fetch_and_op, data, &result, MPI_INT, other, 0, MPI_SUM, window);
    CALL(Win_flush, other, window);
    CALL(Win_unlock, other, window);
    CALL(Win_allocate, 400, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &second);
    CALL(Win_lock_all, 0, second);
    MPI_Request request;
    CALL(Rput, data, 10, MPI_INT, other, 0, 10, MPI_INT, second, &request);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    CALL(Win_unlock_all, second);
    CALL(Win_free, &second);
    CALL(Win_free, &window);

    MPI_File file;
    CALL(File_open, MPI_COMM_WORLD, arguments[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
         &file);
    CALL(File_write_at_all, file, 400 * me, data, 100, MPI_INT, MPI_STATUS_IGNORE);
    CALL(File_read_at, file, 400 * me, memory, 100, MPI_INT, MPI_STATUS_IGNORE);
    CALL(File_close, &file);
    end();
    return 0;
}
