/* Opens, writes and reads files in all ways, and counts what it does: calls, bytes and time. */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READ, WRITE, PREAD, PWRITE, WRITEV, OPEN, CLOSE, FSYNC, FOPEN, FREAD, FWRITE, FFLUSH, FCLOSE, KINDS };
static const char *const names[KINDS] = {"read",  "write", "pread", "pwrite", "writev", "open",  "close",
                                         "fsync", "fopen", "fread", "fwrite", "fflush", "fclose"};
static struct {
    long calls, bytes;
} counts[KINDS];
static double seconds;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* What a call gives, counted as one of a kind that moves so many bytes. */
#define DO(kind, bytes_, call)                                                                    \
    do {                                                                                          \
        double begun = now();                                                                     \
        call;                                                                                     \
        seconds += now() - begun;                                                                 \
        counts[kind].calls++;                                                                     \
        counts[kind].bytes += (bytes_);                                                           \
    } while (0)

static void expect(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static char block[1 << 16];
static int sink;

/* A stream that writes where it is told, by a call of its own. */
static ssize_t pass_on(void *file, const char *from, size_t size)
{
    ssize_t done = write(*(int *)file, from, size);
    counts[WRITE].calls++;
    counts[WRITE].bytes += done;
    return done;
}

static void handle(int signal)
{
    (void)signal;
    if (write(sink, "!", 1) == 1) {
        counts[WRITE].calls++;
        counts[WRITE].bytes++;
    }
}

static void *elsewhere(void *ignored)
{
    expect(write(sink, block, 5) == 5, "another thread cannot write");
    return ignored;
}

static sigjmp_buf out;
static void jump(int signal)
{
    siglongjmp(out, signal);
}

static void posix(const char *name)
{
    int file;
    DO(OPEN, 0, file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0640));
    expect(file >= 0, "open");
    for (int i = 0; i < 100; i++)
        DO(WRITE, 4096, expect(write(file, block, 4096) == 4096, "write"));
    struct iovec parts[2] = {{block, 10}, {block, 20}};
    DO(WRITEV, 30, expect(writev(file, parts, 2) == 30, "writev"));
    DO(PWRITE, 1000, expect(pwrite(file, block, 1000, 8192) == 1000, "pwrite"));
    DO(PREAD, 1000, expect(pread(file, block, 1000, 8192) == 1000, "pread"));
    DO(FSYNC, 0, fsync(file));
    DO(CLOSE, 0, close(file));
    errno = 0;
    DO(WRITE, 0, expect(write(file, block, 1) == -1 && errno == EBADF, "a closed descriptor"));
    DO(OPEN, 0, file = open("/dev/zero", O_RDONLY));
    for (int i = 0; i < 1000; i++) /* at once one after the other */
        DO(READ, 7, expect(read(file, block, 7) == 7, "read"));
    DO(CLOSE, 0, close(file));
}

static void streams(const char *name)
{
    FILE *stream;
    DO(FOPEN, 0, stream = fopen(name, "w"));
    expect(stream != NULL, "fopen");
    for (int i = 0; i < 1000; i++)
        DO(FWRITE, 24, expect(fwrite(block, 8, 3, stream) == 3, "fwrite"));
    DO(FFLUSH, 0, fflush(stream));
    DO(FCLOSE, 0, fclose(stream));
    DO(FOPEN, 0, stream = fopen(name, "r"));
    DO(FREAD, 24000, expect(fread(block, 1, sizeof block, stream) == 24000, "fread"));
    DO(FCLOSE, 0, fclose(stream));
    stream = fopencookie(&sink, "w", (cookie_io_functions_t){.write = pass_on});
    DO(FWRITE, 100, expect(fwrite(block, 1, 100, stream) == 100, "fwrite to a stream of ours"));
    DO(FFLUSH, 0, fflush(stream));
    DO(FCLOSE, 0, fclose(stream));
}

static void children(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(write(sink, block, 9) == 9 ? 0 : 1);
    expect(waitpid(child, &status, 0) == child && status == 0, "a child cannot write");
    child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL); /* no handlers of fork are run */
    if (child == 0)
        _exit(write(sink, block, 9) == 9 ? 0 : 1);
    expect(waitpid(child, &status, 0) == child && status == 0, "a bare child cannot write");
    child = vfork();
    if (child == 0)
        _exit(0);
    expect(waitpid(child, &status, 0) == child && status == 0, "vfork");
    pthread_t thread;
    expect(pthread_create(&thread, NULL, elsewhere, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    int rank;
    char name[4096];
    sink = open("/dev/null", O_WRONLY); /* before there is anything to record */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "%s/data.%d", argv[1], rank);
    posix(name);
    streams(name);
    signal(SIGUSR1, handle);
    raise(SIGUSR1);
    children();

    MPI_File file;
    MPI_Status status;
    snprintf(name, sizeof name, "%s/shared", argv[1]);
    double begun = now();
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, rank * 4000, block, 1000, MPI_INT, &status);
    MPI_File_read_at(file, rank * 4000, block, 500, MPI_INT, &status);
    MPI_File_close(&file);
    double of_mpi = now() - begun;

    /* Jumping out of a call that waits leaves nothing open. */
    int ends[2];
    expect(pipe(ends) == 0, "pipe");
    signal(SIGALRM, jump);
    if (sigsetjmp(out, 1) == 0) {
        alarm(1);
        counts[READ].calls++;
        double since = now();
        seconds -= since;
        if (read(ends[0], block, 1) >= 0)
            expect(0, "the pipe is empty");
    }
    seconds += now();
    MPI_Barrier(MPI_COMM_WORLD);

    snprintf(name, sizeof name, "%s/%d.json", getenv("COUNTS"), rank);
    FILE *said = fdopen((int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT, 0600), "w");
    fprintf(said, "{\"rank\": %d, \"seconds\": %.9f, \"mpi_seconds\": %.9f", rank, seconds, of_mpi);
    for (int kind = 0; kind < KINDS; kind++)
        fprintf(said, ", \"%s\": [%ld, %ld]", names[kind], counts[kind].calls, counts[kind].bytes);
    fprintf(said, "}%c", '\n');
    fflush(said); /* is not counted */
    return MPI_Finalize();
}
