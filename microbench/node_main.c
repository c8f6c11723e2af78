/* popmodel-node: what one node can do. Cores, memory, OpenMP, noise; no MPI. */
#include <omp.h>
#include <stdlib.h>

#include "files.h"
#include "node.h"
#include "program.h"

/* One thread and all of them; working sets from the first-level cache to memory. `popmodel machine measure`
 * chooses better, because it knows the caches. */
static char *default_jobs(void *context)
{
    (void)context;
    static const char *const SYNCHRONISATION[] = {
        "parallel", "for",     "parallel_for", "barrier",  "single", "master",   "critical", "lock",
        "atomic",   "ordered", "reduction",    "sections", "task",   "taskwait", NULL};
    static const char *const ARRAYS[] = {"private", "firstprivate",  "lastprivate", "copyprivate",
                                         "copyin",  "threadprivate", NULL};
    static const char *const SCHEDULES[] = {"schedule_static", "schedule_static chunk=1",
                                            "schedule_dynamic chunk=1", "schedule_guided chunk=1",
                                            NULL};
    int all = omp_get_max_threads();
    struct text jobs = {0};
    for (int threads = 1; threads <= all; threads = threads == 1 && all > 1 ? all : all + 1) {
        for (const char *const *name = SYNCHRONISATION; *name; name++)
            text_add(&jobs, "construct name=%s threads=%d\n", *name, threads);
        for (const char *const *name = ARRAYS; *name; name++)
            text_add(&jobs, "construct name=%s threads=%d bytes=4096\n", *name, threads);
        for (const char *const *name = SCHEDULES; *name; name++)
            text_add(&jobs, "construct threads=%d name=%s\n", threads, *name);
        text_add(&jobs, "clock threads=%d\nfma threads=%d\n", threads, threads);
        text_add(&jobs, "triad threads=%d bytes=%ld\n", threads, 64L << 20);
        text_add(&jobs, "copy threads=%d bytes=%ld\n", threads, 64L << 20);
        text_add(&jobs, "mixed threads=%d bytes=%ld arithmetic=100\n", threads, 192L << 20);
        for (long bytes = 16L << 10; bytes <= 64L << 20; bytes *= 4)
            text_add(&jobs, "load threads=%d bytes=%ld\n", threads, bytes * threads);
    }
    for (long bytes = 16L << 10; bytes <= 64L << 20; bytes *= 4)
        text_add(&jobs, "chase bytes=%ld\nissue bytes=%ld\n", bytes, bytes);
    for (long turns = 8; turns <= 512; turns *= 2)
        text_add(&jobs, "row turns=%ld\n", turns);
    text_add(&jobs, "loads\nstores\nloop\ninstructions\nin_flight\nsmt shared=0\nsmt shared=1\nquantum\n"
                    "line_transfer distance=near\nline_transfer distance=far\n"
                    "line_takeover distance=near bytes=131072\n");
    for (int padded = 0; padded <= 1; padded++)
        text_add(&jobs, "false_sharing threads=%d padded=%d\n", all, padded);
    return jobs.at;
}

static void add_to_header(struct text *header, void *context)
{
    (void)context;
    text_add(header, ",\"files\":");
    files_add(header);
}

int main(int argc, char **argv)
{
    const struct job_kind *const kinds[] = {construct_jobs, sharing_jobs, memory_jobs, mixed_jobs,
                                            core_jobs,      row_jobs,    noise_jobs,   NULL};
    const struct program program = {
        .name = "node",
        .example = "triad threads=2 bytes=67108864",
        .kinds = kinds,
        .default_jobs = default_jobs,
        .add_to_header = add_to_header,
        .leader = 1,
        .ranks = 1,
    };
    struct options options;
    int status = options_read(&options, &program, argc, argv);
    return status >= 0 ? status : program_run(&program, &options);
}
