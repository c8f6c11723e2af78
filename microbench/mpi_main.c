/* popmodel-mpi: what MPI can do between the ranks of a launch. Messages, collectives, overlap,
 * threads.
 *
 * Rank 0 reads the jobs and writes the samples; who measures is chosen by where the ranks are
 * (party.h, layout.h). Two ranks are on one node if MPI names the same processor for both, and on
 * one socket if the kernel says so of all processors that they may use. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_jobs.h"
#include "party.h"
#include "program.h"
#include "samples.h"

static const struct {
    const char *name;
    int level;
} LEVELS[] = {{"single", MPI_THREAD_SINGLE},
              {"funneled", MPI_THREAD_FUNNELED},
              {"serialized", MPI_THREAD_SERIALIZED},
              {"multiple", MPI_THREAD_MULTIPLE}};
enum { LEVEL_COUNT = sizeof LEVELS / sizeof *LEVELS };

/* The level has to be known before MPI is there to tell which rank may complain about options: a
 * wrong word is left to options_read(). */
static int wanted_level(int argc, char **argv)
{
    int level = MPI_THREAD_FUNNELED;
    for (int i = 1; i + 1 < argc; i++)
        for (int k = 0; k < LEVEL_COUNT; k++)
            if (strcmp(argv[i], "--thread-level") == 0 && strcmp(argv[i + 1], LEVELS[k].name) == 0)
                level = LEVELS[k].level;
    return level;
}

static const char *level_name(int level)
{
    for (int k = 0; k < LEVEL_COUNT; k++)
        if (LEVELS[k].level == level)
            return LEVELS[k].name;
    return "unknown";
}

/* Ends the launch with what MPI says: no call of these programs knows a way on from an error. */
static void on_error(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    int rank, length;
    (void)comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (MPI_Error_string(*code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", *code);
    fprintf(stderr, "popmodel-mpi: MPI failed on rank %d: %s\n", rank, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void end_on_errors(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Errhandler_free(&handler);
}

/* Every rank's text on every rank. */
static char **texts_of_all(MPI_Comm comm, const char *text)
{
    int ranks, length = (int)strlen(text) + 1, total = 0;
    MPI_Comm_size(comm, &ranks);
    int *lengths = memory_resize(NULL, (size_t)ranks * sizeof *lengths);
    int *starts = memory_resize(NULL, (size_t)ranks * sizeof *starts);
    MPI_Allgather(&length, 1, MPI_INT, lengths, 1, MPI_INT, comm);
    for (int r = 0; r < ranks; r++) {
        starts[r] = total;
        total += lengths[r];
    }
    char *joined = memory_resize(NULL, (size_t)total);
    MPI_Allgatherv(text, length, MPI_CHAR, joined, lengths, starts, MPI_CHAR, comm);
    char **texts = memory_resize(NULL, (size_t)ranks * sizeof *texts);
    for (int r = 0; r < ranks; r++)
        texts[r] = text_copy(joined + starts[r]);
    free(joined);
    free(starts);
    free(lengths);
    return texts;
}

static void free_texts(char **texts, int ranks)
{
    for (int r = 0; r < ranks; r++)
        free(texts[r]);
    free(texts);
}

/* The socket of a processor. Where the kernel tells none (some virtual machines, containers without
 * /sys) there is nothing to tell sockets apart by, and all is one. */
static int socket_of(long cpu)
{
    struct text path = {0};
    text_add(&path, "/sys/devices/system/cpu/cpu%ld/topology/physical_package_id", cpu);
    char *content = file_read(path.at);
    int socket = content ? atoi(content) : 0;
    free(content);
    text_free(&path);
    return socket < 0 ? 0 : socket;
}

/* Counts the sockets in a list of processors such as "0-3,8"; *first is that of the first one. */
static int count_sockets(const char *list, int *first)
{
    enum { MOST = 1024 };
    unsigned char seen[MOST] = {0};
    int count = 0;
    *first = 0;
    for (const char *at = list; *at && *at != '\n';) {
        char *end;
        long from = strtol(at, &end, 10), to = from;
        if (end == at)
            break;
        if (*end == '-')
            to = strtol(end + 1, &end, 10);
        for (long cpu = from; cpu <= to; cpu++) {
            int socket = socket_of(cpu);
            if (count == 0)
                *first = socket;
            count += !seen[socket % MOST];
            seen[socket % MOST] = 1;
        }
        at = *end == ',' ? end + 1 : end;
    }
    return count > 0 ? count : 1;
}

static struct place find_place(const char *allowed)
{
    struct place place = {0};
    char *online = file_read("/sys/devices/system/cpu/online");
    int first;
    place.sockets = count_sockets(online ? online : allowed, &first);
    place.socket = count_sockets(allowed, &first) == 1 ? first : -1;
    if (place.sockets == 1)
        place.socket = 0;
    free(online);
    return place;
}

static struct launch launch_open(int thread_level)
{
    struct launch launch = {.thread_level = thread_level};
    MPI_Comm_rank(MPI_COMM_WORLD, &launch.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &launch.ranks);

    char host[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(host, &length);
    char *allowed = allowed_cpus();
    launch.hosts = texts_of_all(MPI_COMM_WORLD, host);
    launch.cpus = texts_of_all(MPI_COMM_WORLD, allowed);

    struct place own = find_place(allowed);
    while (strcmp(launch.hosts[own.node], host) != 0)
        own.node++;
    free(allowed);
    launch.at = memory_resize(NULL, (size_t)launch.ranks * sizeof *launch.at);
    MPI_Allgather(&own, (int)sizeof own, MPI_BYTE, launch.at, (int)sizeof own, MPI_BYTE,
                  MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, own.node, launch.rank, &launch.node);
    return launch;
}

static void launch_close(struct launch *launch)
{
    MPI_Comm_free(&launch->node);
    free_texts(launch->hosts, launch->ranks);
    free_texts(launch->cpus, launch->ranks);
    free(launch->at);
}

static long agree(void *context, long value)
{
    (void)context;
    MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return value;
}

static char *share(void *context, char *text)
{
    const struct launch *launch = context;
    long size = agree(context, launch->rank == 0 ? (long)strlen(text) + 1 : 0);
    if (launch->rank != 0)
        text = memory_resize(NULL, (size_t)size);
    MPI_Bcast(text, (int)size, MPI_CHAR, 0, MPI_COMM_WORLD);
    return text;
}

static struct usage usage(void *context)
{
    const struct launch *launch = context;
    struct usage own = own_usage(), sum;
    MPI_Allreduce(&own.cpu, &sum.cpu, 1, MPI_DOUBLE, MPI_SUM, launch->node);
    MPI_Allreduce(&own.involuntary, &sum.involuntary, 1, MPI_LONG, MPI_SUM, launch->node);
    return sum;
}

static char *cpus(void *context)
{
    const struct launch *launch = context;
    struct text all = {0};
    for (int r = 0; r < launch->ranks; r++)
        if (launch->at[r].node == launch->at[launch->rank].node)
            text_add(&all, "%s%s", all.length ? "," : "", launch->cpus[r]);
    return all.at;
}

static void add_to_header(struct text *header, void *context)
{
    const struct launch *launch = context;
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, version, subversion;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0';
    MPI_Get_version(&version, &subversion);
    text_add(header, ",\"mpi\":{\"library\":");
    text_add_json(header, library);
    text_add(header, ",\"standard\":\"%d.%d\",\"thread_level\":\"%s\"},\"ranks_at\":[", version,
             subversion, level_name(launch->thread_level));
    for (int r = 0; r < launch->ranks; r++) {
        text_add(header, "%s{\"rank\":%d,\"host\":", r ? "," : "", r);
        text_add_json(header, launch->hosts[r]);
        if (launch->at[r].socket < 0)
            text_add(header, ",\"socket\":null,\"cpus\":");
        else
            text_add(header, ",\"socket\":%d,\"cpus\":", launch->at[r].socket);
        text_add_json(header, launch->cpus[r]);
        text_add(header, "}");
    }
    text_add(header, "]");
}

/* A look at everything, at the tiers that there are. `popmodel machine measure` asks in more detail. */
static char *default_jobs(void *context)
{
    static const char *const OPERATIONS[] = {"bcast",    "reduce",         "allreduce",
                                             "allgather", "gather",         "scatter",
                                             "alltoall",  "reduce_scatter", "scan", NULL};
    const struct launch *launch = context;
    struct text jobs = {0};
    int pair[2];
    for (const char *const *tier = TIERS; *tier; tier++) {
        if (launch->ranks < 2 ||
            choose_pairs(launch->at, launch->ranks, tier_named(*tier), 1, pair))
            continue;
        for (long bytes = 0; bytes <= 4L << 20; bytes = bytes ? 4 * bytes : 1)
            text_add(&jobs, "ping_pong bytes=%ld tier=%s\n", bytes, *tier);
        for (long bytes = 8; bytes <= 4L << 20; bytes *= 64)
            text_add(&jobs,
                     "send_overhead bytes=%ld tier=%s\nreceive_overhead bytes=%ld tier=%s\n"
                     "train bytes=%ld count=1 tier=%s\ntrain bytes=%ld count=64 tier=%s\n"
                     "late_receiver bytes=%ld tier=%s delay=0.001\n"
                     "window bytes=%ld tier=%s pairs=1 direction=one\n"
                     "window bytes=%ld tier=%s pairs=1 direction=both\n",
                     bytes, *tier, bytes, *tier, bytes, *tier, bytes, *tier, bytes, *tier, bytes,
                     *tier, bytes, *tier);
        for (long bytes = 4096; bytes <= 1L << 20; bytes *= 16)
            text_add(&jobs,
                     "overlap bytes=%ld tier=%s progress=0\noverlap bytes=%ld tier=%s progress=1\n",
                     bytes, *tier, bytes, *tier);
        if (launch->thread_level == MPI_THREAD_MULTIPLE)
            text_add(&jobs,
                     "threaded bytes=8 threads=2 communicator=own tier=%s\n"
                     "threaded bytes=8 threads=2 communicator=shared tier=%s\n",
                     *tier, *tier);
    }
    text_add(&jobs, "collective op=barrier ranks=%d\n", launch->ranks);
    for (const char *const *name = OPERATIONS; *name; name++)
        for (long bytes = 8; bytes <= 1L << 20; bytes *= 16)
            text_add(&jobs, "collective op=%s bytes=%ld ranks=%d\n", *name, bytes, launch->ranks);
    for (long bytes = 4096; bytes <= 1L << 20; bytes *= 16)
        text_add(&jobs, "reduce_local bytes=%ld\n", bytes);
    return jobs.at;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, wanted_level(argc, argv), &provided);
    end_on_errors();
    struct launch launch = launch_open(provided);
    const struct job_kind *const kinds[] = {point_to_point_jobs, collective_jobs, overlap_jobs,
                                            threaded_jobs,       reduce_jobs,     NULL};
    const struct program program = {
        .name = "mpi",
        .has_thread_level = 1,
        .kinds = kinds,
        .default_jobs = default_jobs,
        .add_to_header = add_to_header,
        .context = &launch,
        .leader = launch.rank == 0,
        .ranks = launch.ranks,
        .agree = agree,
        .share = share,
        .usage = usage,
        .cpus = cpus,
    };
    struct options options;
    int status = options_read(&options, &program, argc, argv);
    if (status < 0)
        status = program_run(&program, &options);
    launch_close(&launch);
    MPI_Finalize();
    return status;
}
