/* Options, and the order of events: see program.h. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "samples.h"

enum status { DONE = 0, FAILED = 1, MISUSED = 2 };

static void LIKE_PRINTF(2, 3) complain(const struct program *program, const char *format, ...)
{
    if (!program->leader)
        return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "popmodel-%s: ", program->name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static void show_help(const struct program *program)
{
    printf("Usage: popmodel-%s [options] [JOB...]\n\n"
           "Run benchmark jobs and write one JSON line of raw batches for each.\n"
           "A JOB is one argument: its name and keys, such as '%s'.\n\n"
           "  -j FILE          job lines, # starts a comment (default: a built-in list)\n"
           "  -o FILE          samples, one JSON object per line (default: standard output)\n"
           "  -n LAUNCH        number of this launch, for the record (default: 1)\n"
           "  --budget S       seconds per job at most (default: 0.2)\n"
           "  --least N        batches before a job may stop (default: 50)\n"
           "  --most N         batches at most (default: 200)\n"
           "  --precision F    stop when half the 95 %% interval of the median is below this\n"
           "                   fraction of it (default: 0.03)\n"
           "  --limit S        seconds for all jobs: those that no longer fit are skipped\n",
           program->name, program->example ? program->example : "NAME key=value");
    if (program->has_thread_level)
        printf("  --thread-level L single, funneled, serialized or multiple (default: funneled)\n");
    printf("\nJobs and their keys:\n");
    for (const struct job_kind *const *kinds = program->kinds; *kinds; kinds++)
        for (const struct job_kind *kind = *kinds; kind->name; kind++) {
            printf("  %s", kind->name);
            for (const struct key *key = kind->keys; key && key->name; key++)
                printf(key->required ? " %s=" : " [%s=]", key->name);
            printf("\n");
        }
}

/* A number of at least `least`; -1 with a message if it is none. */
static int read_number(const struct program *program, const char *option, const char *text,
                       double least, double *number)
{
    char *end;
    *number = strtod(text, &end);
    if (end != text && !*end && isfinite(*number) && *number >= least)
        return 0;
    complain(program, "%s must be a number, at least %g, not '%s'", option, least, text);
    return -1;
}

static int read_count(const struct program *program, const char *option, const char *text,
                      long *count)
{
    char *end;
    errno = 0;
    *count = strtol(text, &end, 10);
    if (end != text && !*end && !errno && *count >= 1 && *count <= INT_MAX)
        return 0;
    complain(program, "%s must be a whole number, at least 1, not '%s'", option, text);
    return -1;
}

/* Only checks it: the mpi program reads it itself, before MPI begins. */
static int check_thread_level(const struct program *program, const char *text)
{
    static const char *const LEVELS[] = {"single", "funneled", "serialized", "multiple"};
    for (size_t i = 0; i < sizeof LEVELS / sizeof *LEVELS; i++)
        if (strcmp(text, LEVELS[i]) == 0)
            return 0;
    complain(program, "--thread-level must be single, funneled, serialized or multiple, not '%s'",
             text);
    return -1;
}

static int is_option(const struct program *program, const char *word)
{
    static const char *const OPTIONS[] = {"-j",      "-o",     "-n",          "--budget",
                                          "--least", "--most", "--precision", "--limit"};
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
        if (strcmp(word, OPTIONS[i]) == 0)
            return 1;
    return program->has_thread_level && strcmp(word, "--thread-level") == 0;
}

/* Returns 0, or -1 after a message. */
static int read_option(struct options *options, const struct program *program, const char *option,
                       const char *value)
{
    int wrong = 0;
    if (strcmp(option, "-j") == 0) {
        options->jobs_path = value;
    } else if (strcmp(option, "-o") == 0) {
        options->samples_path = value;
    } else if (strcmp(option, "-n") == 0) {
        wrong = read_count(program, option, value, &options->launch);
    } else if (strcmp(option, "--budget") == 0) {
        wrong = read_number(program, option, value, 0, &options->plan.budget);
    } else if (strcmp(option, "--least") == 0) {
        wrong = read_count(program, option, value, &options->plan.least);
    } else if (strcmp(option, "--most") == 0) {
        wrong = read_count(program, option, value, &options->plan.most);
    } else if (strcmp(option, "--precision") == 0) {
        wrong = read_number(program, option, value, 0, &options->plan.precision);
    } else if (strcmp(option, "--limit") == 0) {
        wrong = read_number(program, option, value, 0, &options->limit);
    } else {
        wrong = check_thread_level(program, value);
    }
    return wrong;
}

int options_read(struct options *options, const struct program *program, int argc, char **argv)
{
    *options = (struct options){
        .launch = 1,
        .limit = INFINITY,
        .plan = {.budget = 0.2, .precision = 0.03, .least = 50, .most = 200},
    };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            if (program->leader)
                show_help(program);
            return DONE;
        }
        if (argv[i][0] != '-') {
            if (options->line_count == MOST_LINES) {
                complain(program,
                         "more than %d jobs as arguments; put them in a file for -j",
                         MOST_LINES);
                return MISUSED;
            }
            options->lines[options->line_count++] = argv[i];
            continue;
        }
        if (!is_option(program, argv[i])) {
            complain(program, "unknown option '%s'; --help lists them", argv[i]);
            return MISUSED;
        }
        if (i + 1 == argc) {
            complain(program, "%s needs a value; --help lists the options", argv[i]);
            return MISUSED;
        }
        if (read_option(options, program, argv[i], argv[i + 1]))
            return MISUSED;
        i++;
    }
    if (options->plan.most < options->plan.least)
        options->plan.most = options->plan.least;
    return -1;
}

static long agreed(const struct program *program, long value)
{
    return program->agree ? program->agree(program->context, value) : value;
}

/* Adds the jobs of one text, which the leader has read and all processes parse; frees it. */
static int add_jobs(struct job_list *jobs, const struct program *program, char *lines,
                    const char *source)
{
    if (program->share)
        lines = program->share(program->context, lines);
    struct text error = {0};
    int wrong = jobs_parse(jobs, lines, source, program->kinds, &error);
    if (wrong)
        complain(program, "%s", error.at);
    text_free(&error);
    free(lines);
    return wrong ? MISUSED : 0;
}

static int read_jobs(struct job_list *jobs, const struct program *program,
                     const struct options *options)
{
    int status = DONE;
    if (options->jobs_path) {
        char *lines = NULL;
        if (program->leader) {
            lines = file_read(options->jobs_path);
            if (!lines)
                complain(program, "cannot read jobs from %s: %s; -j takes a file of job lines",
                         options->jobs_path, strerror(errno));
        }
        if (!agreed(program, lines != NULL))
            return MISUSED;
        status = add_jobs(jobs, program, lines, options->jobs_path);
    }
    for (int i = 0; i < options->line_count && status == DONE; i++)
        status = add_jobs(jobs, program, program->leader ? text_copy(options->lines[i]) : NULL,
                          "argument");
    if (!options->jobs_path && options->line_count == 0)
        status = add_jobs(jobs, program,
                          program->leader ? program->default_jobs(program->context) : NULL,
                          "default");
    return status;
}

static struct usage used(const struct program *program)
{
    return program->usage ? program->usage(program->context) : own_usage();
}

/* Does one job and writes its line. */
static int do_job(const struct program *program, const struct job *job, const struct plan *plan,
                  struct watch *watch, struct samples *samples)
{
    double start = clock_now(), date = clock_date();
    struct plan own = *plan;
    /* Several processes are not looked at: a line through the times of many messages needs all of
     * them from one launch, in which some cores or other are always shared. */
    own.threads = program->agree ? 0 : job_integer(job, "threads", 1);
    struct result result = job->kind->run(job, &own, program->context);
    if (!result.absent[0] && program->leader && result.batches.n == 0)
        result = result_absent("no batch with all threads working at the same time within %g s",
                               plan->budget);
    watch_take(watch, used(program));

    int wrong = 0;
    if (program->leader) {
        struct state state = watch_state(watch);
        struct text line = {0}, error = {0};
        sample_line(&line, job, &result, &state, date, clock_now() - start);
        wrong = samples_write(samples, &line, &error);
        if (wrong)
            complain(program, "%s", error.at);
        text_free(&line);
        text_free(&error);
    }
    batches_free(&result.batches);
    batches_free(&result.arithmetic);
    return agreed(program, wrong) ? FAILED : DONE;
}

static int write_header(const struct program *program, const struct options *options,
                        struct samples *samples)
{
    struct text line = {0}, error = {0};
    int wrong = samples_open(samples, options->samples_path, &error);
    if (!wrong) {
        header_line(&line, program->name, options->launch, program->ranks, &options->plan);
        program->add_to_header(&line, program->context);
        text_add(&line, "}");
        wrong = samples_write(samples, &line, &error);
    }
    if (wrong)
        complain(program, "%s", error.at);
    text_free(&line);
    text_free(&error);
    return wrong;
}

static int write_end(const struct program *program, struct samples *samples, long left, double wall,
                     double foreign)
{
    struct text line = {0}, error = {0};
    text_add(&line, "{\"end\":\"%s\",\"left\":%ld,\"wall\":%.4g,", left ? "limit" : "complete",
             left, wall);
    if (isnan(foreign))
        text_add(&line, "\"foreign\":null}");
    else
        text_add(&line, "\"foreign\":%.3g}", foreign);
    int wrong = samples_write(samples, &line, &error) || samples_close(samples, &error);
    if (wrong)
        complain(program, "%s", error.at);
    text_free(&line);
    text_free(&error);
    return wrong;
}

int program_run(const struct program *program, struct options *options)
{
    double start = clock_now();
    struct job_list jobs = {0};
    struct paces paces = {0};
    struct samples samples = {.file = -1};
    /* A team of fewer threads than asked for would be measured under the wrong name. */
    omp_set_dynamic(0);
    options->plan.agree = program->agree;
    options->plan.agree_with = program->context;
    options->plan.paces = &paces;

    int status = read_jobs(&jobs, program, options);
    if (status == DONE) {
        int wrong = program->leader ? write_header(program, options, &samples) : 0;
        status = agreed(program, wrong) ? FAILED : DONE;
    }
    if (status == DONE) {
        char *cpus = program->cpus ? program->cpus(program->context) : NULL;
        struct watch watch = watch_open(cpus);
        free(cpus);
        watch_take(&watch, used(program));
        long next = 0;
        for (; next < jobs.count && status == DONE; next++) {
            int fits = clock_now() - start + options->plan.budget <= options->limit;
            if (!agreed(program, fits))
                break;
            status = do_job(program, &jobs.jobs[next], &options->plan, &watch, &samples);
        }
        double foreign = watch_whole(&watch);
        watch_close(&watch);
        if (status == DONE && program->leader) {
            double wall = clock_now() - start;
            if (write_end(program, &samples, jobs.count - next, wall, foreign))
                status = FAILED;
        }
    }
    jobs_free(&jobs);
    paces_free(&paces);
    return status;
}
