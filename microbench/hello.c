/* Says that the ranks of an MPI program start and know each other.
 *
 * Each rank receives from the one before it and sends to the one after it, so that a launcher which
 * starts N programs of one rank, or ranks that cannot reach each other, are told from ranks that
 * work. Prints one JSON line per rank:
 *   {"hello":RANK,"ranks":N,"host":"name","library":"first line of the library's version"}
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, length;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    int passed = rank, received = -1;
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    MPI_Sendrecv(&passed, 1, MPI_INT, next, 0, &received, 1, MPI_INT, previous, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);

    char host[MPI_MAX_PROCESSOR_NAME + 1] = "", library[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    MPI_Get_processor_name(host, &length);
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n\"\\")] = '\0';

    /* One write per line: lines of ranks must not mix. */
    char line[sizeof host + sizeof library + 100];
    snprintf(line, sizeof line, "{\"hello\":%d,\"ranks\":%d,\"host\":\"%s\",\"library\":\"%s\"}\n",
             rank, ranks, host, library);
    fputs(line, stdout);
    fflush(stdout);

    MPI_Finalize();
    return received == previous ? 0 : 1;
}
