/* A program that counts what it does, to be compared with what was recorded.
 *
 *     CALL(Send, buffer, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
 *     sent(1, 7, 4);
 *
 * report() writes $COUNTS/RANK.json: calls by name, messages by what happened, partner (its rank in
 * MPI_COMM_WORLD), tag and bytes, and what else was noted. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SECOND_NAMES /* as libraries between a program and MPI call it */
#define CALL(name, ...) (count_call(#name), must(PMPI_##name(__VA_ARGS__), #name, __LINE__))
#else
#define CALL(name, ...) (count_call(#name), must(MPI_##name(__VA_ARGS__), #name, __LINE__))
#endif

static struct {
    const char *name;
    long count;
} calls[256];
static char *messages, *notes;
static size_t messages_length, notes_length __attribute__((unused));
static int me, ranks;

static void must(int result, const char *name, int line)
{
    if (result == MPI_SUCCESS)
        return;
    fprintf(stderr, "line %d: MPI_%s failed\n", line, name);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void count_call(const char *name)
{
    int i = 0;
    while (calls[i].name && strcmp(calls[i].name, name) != 0)
        i++;
    calls[i].name = name;
    calls[i].count++;
}

static void add(char **text, size_t *length, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    *text = realloc(*text, *length + 512);
    *length += (size_t)vsnprintf(*text + *length, 512, format, arguments);
    va_end(arguments);
}

static void message(const char *what, int partner, int tag, long bytes)
{
    add(&messages, &messages_length, "%s[\"%s\",%d,%d,%ld]", messages_length ? "," : "", what,
        partner, tag, bytes);
}

static void sent(int to, int tag, long bytes)
{
    message("sent", to, tag, bytes);
}

static void received(int from, int tag, long bytes)
{
    message("received", from, tag, bytes);
}

/* Anything else that a test wants to know: a JSON value. */
#define noted(...)                                                                                \
    (add(&notes, &notes_length, "%s", notes_length ? "," : ""),                                   \
     add(&notes, &notes_length, __VA_ARGS__))

static void begin(int *count, char ***arguments)
{
    CALL(Init, count, arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static void report(void)
{
    char path[4096];
    const char *folder = getenv("COUNTS");
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%d.json", folder, me);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    fprintf(file, "{\"rank\":%d,\"calls\":{", me);
    for (int i = 0; calls[i].name; i++)
        fprintf(file, "%s\"%s\":%ld", i ? "," : "", calls[i].name, calls[i].count);
    fprintf(file, "},\"messages\":[%s],\"notes\":[%s]}\n", messages ? messages : "",
            notes ? notes : "");
    fclose(file);
}

static void end(void)
{
    count_call("Finalize");
    report();
#ifdef SECOND_NAMES
    PMPI_Finalize();
#else
    MPI_Finalize();
#endif
}

/* Unused ones are no mistake. */
static void unused(void) __attribute__((unused));
static void unused(void)
{
    (void)sent, (void)received, (void)begin, (void)end, (void)unused;
}
