/* popmodel-node: what one node can do: cores, memory, OpenMP, noise. No MPI. */
#include <stdlib.h>

#include "node.h"
#include "program.h"

static char *default_jobs(void *context)
{
    (void)context;
    return text_copy("quantum\n");
}

static void add_to_header(struct text *header, void *context)
{
    (void)context;
    text_add(header, ",\"files\":{}");
}

int main(int argc, char **argv)
{
    const struct job_kind *const kinds[] = {noise_jobs, NULL};
    const struct program program = {
        .name = "node",
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
