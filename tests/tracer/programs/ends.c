/* Programs that end in all kinds of ways, after as many barriers as the second argument says. */
#define _GNU_SOURCE
#include "counting.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int is(const char *way, const char *name)
{
    return strcmp(way, name) == 0;
}

int main(int count, char **arguments)
{
    const char *way = arguments[1];
    long barriers = atol(arguments[2]);
    begin(&count, &arguments);
    if (is(way, "limit")) { /* not before: MPI needs large files itself */
        rlim_t most = (rlim_t)atol(arguments[3]);
        struct rlimit limit = {most, most};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    for (long i = 0; i < barriers; i++)
        MPI_Barrier(MPI_COMM_SELF);
    if (is(way, "abort"))
        abort();
    if (is(way, "kill"))
        raise(SIGKILL);
    if (is(way, "exit"))
        exit(7);
    if (is(way, "_exit"))
        _exit(8);
    if (is(way, "MPI_Abort"))
        MPI_Abort(MPI_COMM_WORLD, 9);
    if (is(way, "return"))
        return 10;
    if (is(way, "fork")) {
        /* A child that calls what its parent has been calling, ends as a process ends, and another
         * that becomes a program of its own. */
        pid_t child = fork();
        if (child == 0) {
            char text[] = "in the child\n";
            exit(write(STDOUT_FILENO, text, sizeof text - 1) < 0);
        }
        waitpid(child, NULL, 0);
        if (system("true") != 0)
            return 1;
    }
    if (is(way, "exec")) {
        char *again[] = {arguments[0], "finalize", "3", NULL};
        MPI_Finalize();
        execv(arguments[3], again);
        return 1;
    }
    if (is(way, "close")) {
        for (int file = 0; file < 256; file++)
            close(file);
        MPI_Comm made;
        MPI_Comm_dup(MPI_COMM_SELF, &made);
        exit(0); /* MPI has lost its files as well, and would wait for ever */
    }
    if (is(way, "pause")) {
        MPI_Pcontrol(0);
        int data = 0, room;
        for (int i = 0; i < 5; i++) {
            MPI_Barrier(MPI_COMM_SELF);
            MPI_Sendrecv(&data, 1, MPI_INT, 0, 1, &room, 1, MPI_INT, 0, 1, MPI_COMM_SELF,
                         MPI_STATUS_IGNORE);
        }
        MPI_Pcontrol(1);
        MPI_Pcontrol(1);
        MPI_Barrier(MPI_COMM_SELF);
    }
    if (is(way, "output"))
        printf("to standard output, without its end");
    MPI_Finalize();
    return is(way, "output") ? 11 : 0;
}
