/* Sums of threads: see summary.h. */
#define _GNU_SOURCE
#include "summary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpus.h"
#include "meta.h"
#include "process.h"

#define SIZE ((sizeof(struct header) + sizeof(struct sums_of_thread) + 4095) / 4096 * 4096)
#define DEEPEST 64
#define PLACE_EVERY 1000000u   /* ns */
#define LOOK_AGAIN 1000000000u /* ns */

enum { OUTSIDE, INSIDE };
enum doing { USEFUL, IDLE, FORK, IN_MPI, WAITING }; /* WAITING + enum construct */

struct summary {
    struct sums_of_thread *sums;
    unsigned char doing[DEEPEST]; /* what goes on, and what it is inside of */
    int depth, below;             /* `below` are open that there is no room for */
    int parts, regions, calls;    /* open */
    int call;                     /* the family of the one that is open */
    bool began, over;
    uint64_t since, region_since, place_at, look_at;
    uint64_t next_part; /* the parts of which the mask is looked at: 1, 2, 4, ... */
    struct kernel {
        uint64_t used, waited, voluntary, involuntary, migrations, minor, major;
        bool knows_migrations;
    } base;
};

static _Atomic uint64_t window_from, window_to = UINT64_MAX;

static const unsigned char family_of[] = {
#define FAMILY(name, number, type, value, family) [number] = FAMILY_##family,
    POPMODEL_CALLS(FAMILY)
#undef FAMILY
};

bool summary_wanted(void)
{
    const char *given = getenv("POPMODEL_TRACE_SUMMARY");
    return given && strcmp(given, "1") == 0;
}

/* -- what the kernel knows */

static bool read_proc(pid_t id, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)id, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    size_t length = 0;
    ssize_t got;
    while (length < size - 1 && (got = read(file, text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    close(file);
    text[length] = '\0';
    return length > 0;
}

static uint64_t number_behind(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    at = at ? at + strlen(key) : "";
    return strtoull(at + strspn(at, " \t:"), NULL, 10);
}

static struct kernel ask_kernel(struct thread *t)
{
    struct kernel k = {0};
    char text[8192];
    if (read_proc(t->id, "schedstat", text, sizeof text))
        sscanf(text, "%" SCNu64 " %" SCNu64, &k.used, &k.waited);
    if (read_proc(t->id, "status", text, sizeof text)) {
        k.voluntary = number_behind(text, "\nvoluntary_ctxt_switches");
        k.involuntary = number_behind(text, "nonvoluntary_ctxt_switches");
    }
    if (read_proc(t->id, "sched", text, sizeof text) && strstr(text, "nr_migrations")) {
        k.migrations = number_behind(text, "nr_migrations");
        k.knows_migrations = true;
    }
    /* Behind the name in brackets, which may hold anything: state and six more, then the faults. */
    char *at = read_proc(t->id, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;
    if (at)
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64, &k.minor, &k.major);
    return k;
}

static void put_kernel(struct thread *t)
{
    cpus_tell(t);
    struct kernel k = ask_kernel(t), *b = &t->summary->base;
    struct sums_of_thread *sums = t->summary->sums;
    sums->used = k.used - b->used;
    sums->waited = k.waited - b->waited;
    sums->voluntary = k.voluntary - b->voluntary;
    sums->involuntary = k.involuntary - b->involuntary;
    sums->migrations = k.migrations - b->migrations;
    sums->knows_migrations = k.knows_migrations;
    sums->minor = k.minor - b->minor;
    sums->major = k.major - b->major;
}

void summary_look(struct thread *t)
{
    int kept = errno;
    if (!t->summary->over)
        put_kernel(t);
    errno = kept;
}

static void seen_on(struct sums_of_thread *sums, int cpu)
{
    for (int i = 0; cpu >= 0 && i < SUMMARY_PLACES; i++)
        if (sums->places[i].cpu == 0 || sums->places[i].cpu == (uint64_t)cpu + 1) {
            sums->places[i].cpu = (uint64_t)cpu + 1;
            sums->places[i].times++;
            return;
        }
}

/* -- what a thread does, from its records */

static int top(const struct summary *s)
{
    return s->depth ? s->doing[s->depth - 1] : s->sums->is_worker ? IDLE : USEFUL;
}

static void push(struct summary *s, int doing)
{
    if (s->depth < DEEPEST)
        s->doing[s->depth++] = (unsigned char)doing;
    else
        s->below++;
}

/* Ends what goes on, with all inside of it that was not ended. */
static void pop(struct summary *s, int doing)
{
    if (s->below) {
        s->below--;
        return;
    }
    for (int i = s->depth - 1; i >= 0; i--)
        if (s->doing[i] == doing) {
            s->depth = i;
            return;
        }
}

static void begin_sums(struct thread *t, uint64_t time)
{
    struct summary *s = t->summary;
    uint64_t is_worker = s->sums->is_worker;
    memset(s->sums, 0, sizeof *s->sums);
    s->sums->is_worker = is_worker;
    s->sums->begin = s->sums->end = s->since = s->region_since = time;
    s->base = ask_kernel(t);
    s->look_at = time + LOOK_AGAIN;
    s->place_at = time;
    s->next_part = 1;
}

static void account(struct summary *s, uint64_t time)
{
    struct sums_of_thread *sums = s->sums;
    if (time <= s->since)
        return;
    uint64_t passed = time - s->since;
    int doing = top(s), where = s->parts || s->regions || sums->is_worker ? INSIDE : OUTSIDE;
    if (doing == USEFUL)
        sums->useful[where] += passed;
    else if (doing == IN_MPI)
        sums->mpi[where] += passed;
    else if (doing == FORK)
        sums->fork += passed;
    else if (doing == IDLE)
        sums->idle += passed;
    else
        sums->waits[doing - WAITING] += passed;
    if (doing == IN_MPI)
        sums->families[s->call].time += passed;
    s->since = sums->end = time;
}

static bool waits_in(int construct)
{
    return construct < SUMMARY_CONSTRUCTS && construct != CRITICAL_HOLD &&
           construct != LOCK_HOLD && construct != SINGLE && construct != SECTIONS;
}

static void add(struct thread *t, const struct record *record)
{
    struct summary *s = t->summary;
    struct sums_of_thread *sums = s->sums;
    bool starts_or_ends = record->call == CALL_Init || record->call == CALL_Init_thread ||
                          record->call == CALL_Finalize;
    account(s, record->time);
    switch (record->kind) {
    case ENTER:
        if (record->call == CALL_Finalize) {
            summary_end();
            return;
        }
        s->call = family_of[record->call];
        push(s, IN_MPI);
        if (starts_or_ends)
            break;
        sums->families[s->call].calls++;
        sums->families[s->call].sent += (uint64_t)record->b;
        sums->families[s->call].received += (uint64_t)record->c & (((uint64_t)1 << SITE_SHIFT) - 1);
        break;
    case LEAVE:
        pop(s, IN_MPI);
        break;
    case SEND:
        sums->families[s->call].sent += (uint64_t)record->c;
        break;
    case RECEIVE:
        sums->families[s->call].received += (uint64_t)record->c;
        break;
    case PARALLEL_BEGIN:
        if (s->regions++ == 0)
            s->region_since = record->time;
        sums->regions++;
        if (record->a > sums->asked)
            sums->asked = record->a;
        push(s, FORK);
        break;
    case PARALLEL_END:
        if (s->regions > 0 && --s->regions == 0 && s->parts == 0)
            sums->in_regions += record->time - s->region_since;
        pop(s, FORK);
        break;
    case TASK_BEGIN:
        s->parts++;
        sums->parts++;
        push(s, USEFUL);
        break;
    case TASK_END:
        if (s->parts > 0)
            s->parts--;
        pop(s, USEFUL);
        break;
    case TASK_RUN:
        push(s, USEFUL);
        break;
    case TASK_STOP:
        if (top(s) == USEFUL)
            pop(s, USEFUL);
        break;
    case OMP_ENTER:
        if (waits_in(record->call))
            push(s, WAITING + record->call);
        break;
    case OMP_LEAVE:
        if (waits_in(record->call))
            pop(s, WAITING + record->call);
        break;
    case END:
        sums->has_ended = 1;
        break;
    default:
        break;
    }
}

void summary_fold(struct thread *t)
{
    struct summary *s = t->summary;
    struct record *end = t->next;
    t->next = t->nowhere;
    if (end == t->nowhere || s->over)
        return;
    uint64_t from = atomic_load_explicit(&window_from, memory_order_relaxed);
    uint64_t to = atomic_load_explicit(&window_to, memory_order_relaxed);
    for (struct record *record = t->nowhere; record < end && !s->over; record++) {
        if (UNLIKELY(!s->began)) {
            s->sums->is_worker = record->kind == TASK_BEGIN;
            s->began = true;
            begin_sums(t, record->time);
        } else if (UNLIKELY(s->sums->begin < from && record->time >= from)) {
            begin_sums(t, from);
        }
        if (UNLIKELY(record->time > to))
            break;
        add(t, record);
    }
    if (s->over)
        return;
    if (UNLIKELY(s->since >= s->place_at)) {
        s->place_at = s->since + PLACE_EVERY;
        seen_on(s->sums, sched_getcpu());
    }
    /* A runtime binds its threads when it starts them, the first one later: look early as well. */
    bool is_early = s->sums->parts >= s->next_part;
    if (UNLIKELY(s->since >= s->look_at || is_early)) {
        s->look_at = s->since + LOOK_AGAIN;
        s->next_part = is_early ? 2 * s->sums->parts : s->next_part;
        int kept = errno;
        put_kernel(t);
        errno = kept;
    }
}

bool summary_open(struct thread *t)
{
    t->summary = calloc(1, sizeof *t->summary);
    void *at = t->summary ? map_first(t, SIZE) : NULL;
    if (!at) {
        free(t->summary);
        t->summary = NULL;
        return false;
    }
    t->window = at;
    t->window_size = SIZE;
    t->summary->sums = (struct sums_of_thread *)(t->window + sizeof(struct header));
    return true;
}

/* -- what is around the process */

/* The processors of the control group that holds this process, which are those of its job on this
 * node, or of a step of it; of either version of control groups. */
static bool read_cpuset(char *text, size_t size)
{
    static const char *const places[] = {"/sys/fs/cgroup/cpuset%s/cpuset.effective_cpus",
                                         "/sys/fs/cgroup/cpuset%s/cpuset.cpus",
                                         "/sys/fs/cgroup%s/cpuset.cpus.effective"};
    char line[4096], path[4200];
    bool is_read = false;
    FILE *groups = fopen("/proc/self/cgroup", "re");
    while (groups && !is_read && fgets(line, sizeof line, groups)) {
        char *names = strchr(line, ':'), *folder = names ? strchr(names + 1, ':') : NULL;
        if (!folder)
            continue;
        *folder++ = '\0';
        folder[strcspn(folder, "\n")] = '\0';
        bool is_second = names[1] == '\0';
        if (!is_second && !strstr(names, "cpuset"))
            continue;
        for (int i = is_second ? 2 : 0; i < (is_second ? 3 : 2) && !is_read; i++) {
            snprintf(path, sizeof path, places[i], strcmp(folder, "/") ? folder : "");
            FILE *file = fopen(path, "re");
            is_read = file && fgets(text, (int)size, file) && text[0] != '\n';
            if (file)
                fclose(file);
        }
    }
    if (groups)
        fclose(groups);
    text[is_read ? strcspn(text, "\n") : 0] = '\0';
    return is_read;
}

static void line_environment(void)
{
    static const char *const names[] = {
        "OMP_NUM_THREADS", "OMP_PROC_BIND",      "OMP_PLACES",     "OMP_DYNAMIC",
        "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY",  "KMP_AFFINITY",   "SLURM_CPUS_PER_TASK",
        "SLURM_CPU_BIND",  "SLURM_CPUS_ON_NODE", "OMP_THREAD_LIMIT", "PMIX_RANK",
        "PMI_RANK",        "SLURM_PROCID"};
    struct line line;
    line_begin(&line, "environment");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]))
            line_text(&line, names[i], getenv(names[i]));
    char cpus[4096];
    if (read_cpuset(cpus, sizeof cpus))
        line_text(&line, "cpuset", cpus);
    line_end(&line);
}

static int number_in(const char *format, int cpu)
{
    char path[96], text[256];
    snprintf(path, sizeof path, format, cpu);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (got <= 0)
        return -1;
    text[got] = '\0';
    return atoi(text);
}

/* The directory nodeN in that of a processor. */
static int domain_of(int cpu)
{
    char path[64];
    int number = -1;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", cpu);
    DIR *folder = opendir(path);
    for (struct dirent *one; folder && (one = readdir(folder));)
        if (sscanf(one->d_name, "node%d", &number) == 1)
            break;
    if (folder)
        closedir(folder);
    return number;
}

/* Of each processor its number, the first one of its core, its socket and its memory domain. One
 * process of a node tells. */
static void line_topology(void)
{
    static const char *const local[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "PMI_LOCAL_RANK", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if (getenv(local[i]) && strcmp(getenv(local[i]), "0") != 0)
            return;
    long most = sysconf(_SC_NPROCESSORS_CONF);
    const char *topology = "/sys/devices/system/cpu/cpu%d/topology/";
    char siblings[96], package[96];
    snprintf(siblings, sizeof siblings, "%s%s", topology, "thread_siblings_list");
    snprintf(package, sizeof package, "%s%s", topology, "physical_package_id");
    struct line line;
    line_begin(&line, "topology");
    line_key(&line, "cpus");
    const char *between = "[";
    for (int cpu = 0; cpu < most; cpu++) {
        char text[96];
        int core = number_in(siblings, cpu);
        if (core < 0) /* not online, or unknown */
            continue;
        snprintf(text, sizeof text, "%s[%d,%d,%d,%d]", between, cpu, core, number_in(package, cpu),
                 domain_of(cpu));
        line_raw(&line, text);
        between = ",";
    }
    line_raw(&line, *between == '[' ? "[]" : "]");
    line_end(&line);
}

/* How busy the processors are that this process may use, by the kernel's count of ticks. */
static void line_load(const char *when)
{
    cpu_set_t set;
    struct timespec used;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    struct line line;
    line_begin(&line, "load");
    line_text(&line, "when", when);
    line_number(&line, "time", (int64_t)now());
    line_number(&line, "used", (int64_t)used.tv_sec * 1000000000 + used.tv_nsec);
    line_number(&line, "ticks", sysconf(_SC_CLK_TCK));
    line_key(&line, "cpus");
    const char *between = "[";
    FILE *stat = fopen("/proc/stat", "re");
    char text[512];
    while (stat && fgets(text, sizeof text, stat)) {
        int cpu;
        uint64_t is[8] = {0};
        if (sscanf(text, "cpu%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                         " %" SCNu64 " %" SCNu64 " %" SCNu64,
                   &cpu, &is[0], &is[1], &is[2], &is[3], &is[4], &is[5], &is[6], &is[7]) < 5 ||
            cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &set))
            continue;
        char of_one[96];
        snprintf(of_one, sizeof of_one, "%s[%d,%" PRIu64 ",%" PRIu64 "]", between, cpu,
                 is[0] + is[1] + is[2] + is[5] + is[6], is[7]);
        line_raw(&line, of_one);
        between = ",";
    }
    if (stat)
        fclose(stat);
    line_raw(&line, *between == '[' ? "[]" : "]");
    line_end(&line);
}

/* Threads that are not recorded: of libraries that communicate, or the program's own. */
static void line_others(void)
{
    struct line line;
    line_begin(&line, "others");
    line_key(&line, "threads");
    const char *between = "[";
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *one; tasks && (one = readdir(tasks));) {
        char text[8192], name[64], of_one[64];
        pid_t id = (pid_t)atoi(one->d_name);
        uint64_t used = 0;
        if (id <= 0 || process_has_thread(id) || !read_proc(id, "schedstat", text, sizeof text))
            continue;
        sscanf(text, "%" SCNu64, &used);
        if (!read_proc(id, "comm", name, sizeof name))
            name[0] = '\0';
        name[strcspn(name, "\n")] = '\0';
        snprintf(of_one, sizeof of_one, "%s[%" PRIu64 ",", between, used);
        line_raw(&line, of_one);
        line_string(&line, name);
        line_raw(&line, "]");
        between = ",";
    }
    if (tasks)
        closedir(tasks);
    line_raw(&line, *between == '[' ? "[]" : "]");
    line_end(&line);
}

void tell_surroundings(void)
{
    line_environment();
    line_topology();
}

void summary_begin(void)
{
    if (!process.summing)
        return;
    int kept = errno;
    line_load("begin");
    uint64_t from = now();
    atomic_store(&window_from, from);
    if (this_thread && this_thread->summary && this_thread->summary->began)
        begin_sums(this_thread, from);
    errno = kept;
}

static void end_of_thread(struct thread *t)
{
    if (!t->summary || t->summary->over)
        return;
    put_kernel(t);
    t->summary->over = true;
}

void summary_end(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!process.summing || atomic_flag_test_and_set(&told))
        return;
    int kept = errno;
    atomic_store(&window_to, now());
    line_load("end");
    line_others();
    process_each(end_of_thread);
    errno = kept;
}
