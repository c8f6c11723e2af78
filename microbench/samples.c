/* Writing samples: see samples.h. */
#define _GNU_SOURCE
#include "samples.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock.h"

int samples_open(struct samples *samples, const char *path, struct text *error)
{
    int standard = !path || strcmp(path, "-") == 0;
    samples->path = standard ? "standard output" : path;
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW;
    samples->file = standard ? STDOUT_FILENO : open(path, flags, 0666);
    if (samples->file >= 0)
        return 0;
    text_add(error, "cannot write samples to %s: %s; choose another file with -o", path,
             strerror(errno));
    return -1;
}

static int cannot_write(const struct samples *samples, struct text *error)
{
    text_add(error,
             "cannot write samples to %s: %s; earlier samples are kept, free some space or choose "
             "another file with -o",
             samples->path, strerror(errno));
    return -1;
}

int samples_write(struct samples *samples, struct text *line, struct text *error)
{
    text_add(line, "\n");
    size_t done = 0;
    while (done < line->length) {
        ssize_t wrote = write(samples->file, line->at + done, line->length - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return cannot_write(samples, error);
        done += (size_t)wrote;
    }
    line->length = 0;
    return 0;
}

int samples_close(struct samples *samples, struct text *error)
{
    if (samples->file == STDOUT_FILENO || close(samples->file) == 0)
        return 0;
    return cannot_write(samples, error);
}

/* Whole numbers as numbers, all else as text. */
static void add_value(struct text *line, const char *value)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (*end == '\0' && !errno)
        text_add(line, "%ld", number);
    else
        text_add_json(line, value);
}

static void add_optional(struct text *line, const char *key, double value)
{
    if (value != 0)
        text_add(line, ",\"%s\":%.10g", key, value);
}

void sample_line(struct text *line, const struct job *job, const struct result *result,
                 const struct state *state, double at, double wall)
{
    text_add(line, "{\"job\":\"%s\",\"params\":{", job->kind->name);
    for (int i = 0; i < job->count; i++) {
        text_add(line, "%s\"%s\":", i ? "," : "", job->parameters[i].key);
        add_value(line, job->parameters[i].value);
    }
    text_add(line, "}");
    if (result->absent[0]) {
        text_add(line, ",\"absent\":");
        text_add_json(line, result->absent);
    } else {
        const struct batches *batches = &result->batches;
        text_add(line, ",\"inner\":%ld,\"seconds\":", batches->inner);
        text_add_numbers(line, batches->seconds, batches->n);
        if (batches->reference) {
            text_add(line, ",\"reference\":");
            text_add_numbers(line, batches->reference, batches->n);
        }
        if (batches->pace) {
            text_add(line, ",\"pace\":");
            text_add_numbers(line, batches->pace, batches->n);
        }
        if (result->arithmetic.n) {
            text_add(line, ",\"arithmetic\":");
            text_add_numbers(line, result->arithmetic.seconds, result->arithmetic.n);
        }
        if (result->arithmetic.pace) {
            text_add(line, ",\"arithmetic_pace\":");
            text_add_numbers(line, result->arithmetic.pace, result->arithmetic.n);
        }
        add_optional(line, "moved", result->moved);
        add_optional(line, "work", result->work);
        add_optional(line, "compute", result->compute);
        add_optional(line, "nodes", (double)result->nodes);
        add_optional(line, "rejected", (double)batches->rejected);
        text_add(line, ",\"stopped\":\"%s\",\"wall\":%.4g,\"at\":%.3f", batches->stopped, wall, at);
        if (state) {
            text_add(line, ",\"involuntary\":%ld", state->involuntary);
            if (isnan(state->steal))
                text_add(line, ",\"steal\":null");
            else
                text_add(line, ",\"steal\":%.4g", state->steal);
            if (isnan(state->foreign))
                text_add(line, ",\"foreign\":null");
            else
                text_add(line, ",\"foreign\":%.3g", state->foreign);
        }
    }
    text_add(line, "}");
}

static void add_compiler(struct text *line)
{
#if defined(__INTEL_LLVM_COMPILER)
    text_add(line, "Intel LLVM %d", __INTEL_LLVM_COMPILER);
#elif defined(__NVCOMPILER)
    text_add(line, "NVHPC %d.%d", __NVCOMPILER_MAJOR__, __NVCOMPILER_MINOR__);
#elif defined(__clang__)
    text_add(line, "Clang %d.%d.%d", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
    text_add(line, "GCC %d.%d.%d", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
    text_add(line, "unknown");
#endif
}

/* The file name of the OpenMP library that is loaded, as the kernel lists it; NULL if none of the
 * known ones is. */
static char *openmp_runtime(void)
{
    static const char *const LIBRARIES[] = {"/libgomp",  "/libomp.",   "/libomp5",  "/libiomp5",
                                            "/libnvomp", "/libcraymp", "/libxlsmp", "/libarmomp"};
    char *maps = file_read("/proc/self/maps"), *found = NULL;
    for (size_t i = 0; maps && !found && i < sizeof LIBRARIES / sizeof *LIBRARIES; i++) {
        char *name = strstr(maps, LIBRARIES[i]);
        if (name) {
            name++;
            name[strcspn(name, "\n /")] = '\0';
            found = text_copy(name);
        }
    }
    free(maps);
    return found;
}

/* Marks the processors of this thread's mask. */
static void mark_affinity(unsigned char *allowed, int most)
{
    /* The kernel refuses a set smaller than its own, whose size no call tells. */
    size_t size = CPU_ALLOC_SIZE((size_t)most);
    cpu_set_t *set = memory_resize(NULL, size);
    CPU_ZERO_S(size, set);
    if (sched_getaffinity(0, size, set) == 0)
        for (int cpu = 0; cpu < most; cpu++)
            allowed[cpu] |= CPU_ISSET_S((size_t)cpu, size, set) != 0;
    free(set);
}

/* Marks the processors of OpenMP's places: a runtime that binds its threads has already bound the
 * first one, whose mask then is not the process's any more. */
static void mark_places(unsigned char *allowed, int most)
{
    for (int place = 0; place < omp_get_num_places(); place++) {
        int count = omp_get_place_num_procs(place);
        int *cpus = memory_resize(NULL, (size_t)count * sizeof *cpus);
        omp_get_place_proc_ids(place, cpus);
        for (int i = 0; i < count; i++)
            if (cpus[i] >= 0 && cpus[i] < most)
                allowed[cpus[i]] = 1;
        free(cpus);
    }
}

char *allowed_cpus(void)
{
    enum { MOST = 1 << 16 };
    unsigned char *allowed = memory_resize(NULL, MOST);
    memset(allowed, 0, MOST);
    mark_affinity(allowed, MOST);
    mark_places(allowed, MOST);
    struct text list = {0};
    text_add(&list, "%s", "");
    for (int cpu = 0; cpu < MOST; cpu++) {
        if (!allowed[cpu])
            continue;
        int last = cpu;
        while (last + 1 < MOST && allowed[last + 1])
            last++;
        text_add(&list, list.length ? ",%d" : "%d", cpu);
        if (last > cpu)
            text_add(&list, "-%d", last);
        cpu = last;
    }
    free(allowed);
    return list.at;
}

void header_line(struct text *line, const char *program, long launch, long ranks,
                 const struct plan *plan)
{
    struct utsname names;
    double load[1];
    uname(&names);
    text_add(line,
             "{\"schema\":\"popmodel/samples/1\",\"program\":\"%s\",\"launch\":%ld,"
             "\"started\":%.3f,\"host\":",
             program, launch, clock_date());
    text_add_json(line, names.nodename);
    text_add(line, ",\"kernel\":");
    struct text kernel = {0};
    text_add(&kernel, "%s %s %s", names.sysname, names.release, names.machine);
    text_add_json(line, kernel.at);
    text_free(&kernel);
    text_add(line, ",\"compiler\":\"");
    add_compiler(line);
    text_add(line, "\",\"ranks\":%ld,\"openmp\":{\"version\":%d,\"runtime\":", ranks, _OPENMP);
    char *runtime = openmp_runtime();
    text_add_json(line, runtime);
    free(runtime);
    text_add(line, ",\"max_threads\":%d,\"wait_policy\":", omp_get_max_threads());
    text_add_json(line, getenv("OMP_WAIT_POLICY"));
    text_add(line, ",\"places\":");
    text_add_json(line, getenv("OMP_PLACES"));
    text_add(line, ",\"proc_bind\":");
    text_add_json(line, getenv("OMP_PROC_BIND"));
    text_add(line, "},\"load\":");
    if (getloadavg(load, 1) == 1)
        text_add(line, "%.2f", load[0]);
    else
        text_add(line, "null");
    text_add(line, ",\"limits\":{\"budget\":%g,\"least\":%ld,\"most\":%ld,\"precision\":%g}",
             plan->budget, plan->least, plan->most, plan->precision);
}
