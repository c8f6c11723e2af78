/* From the first record to the end of the process: see process.h.
 *
 * Nothing is created before there is something to record. Shells, launchers and interpreters
 * inherit LD_PRELOAD as well, and must not notice.
 */
#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpus.h"
#include "loaded.h"
#include "meta.h"
#include "summary.h"

#define META_RESERVED (64 << 10)
#define MOST_NAMESAKES 1000

static __thread bool ended; /* this thread has, though destructors of its may still run */
static pthread_key_t at_thread_end;
static struct thread *threads;
static unsigned thread_count;

/* Reads up to `size` - 1 bytes of a file and ends them with a zero; -1 if it cannot be read. */
static ssize_t read_small(const char *path, char *to, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    size_t length = 0;
    ssize_t got = 0;
    while (length < size - 1 && (got = read(file, to + length, size - 1 - length)) > 0)
        length += (size_t)got;
    close(file);
    to[length] = '\0';
    return got < 0 ? -1 : (ssize_t)length;
}

static uint64_t realtime(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void tell_start(void)
{
    /* Processes of one boot have one CLOCK_MONOTONIC, whatever their hosts are called. */
    char boot[64];
    ssize_t known = read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    boot[strcspn(boot, "\n")] = '\0';

    struct line line;
    line_begin(&line, "start");
    line_number(&line, "version", RAW_VERSION);
    line_text(&line, "host", process.host);
    line_text(&line, "boot", known > 0 ? boot : NULL);
    line_number(&line, "pid", getpid());
    line_number(&line, "monotonic", (int64_t)now());
    line_number(&line, "realtime", (int64_t)realtime());
    line_end(&line);
}

/* The name of this host as it may stand in the name of a file. POPMODEL_TRACE_HOST names it where
 * several machines believe to be called the same. */
static void name_host(void)
{
    const char *given = getenv("POPMODEL_TRACE_HOST");
    if (given && *given)
        snprintf(process.host, sizeof process.host, "%s", given);
    else if (gethostname(process.host, sizeof process.host - 1) != 0)
        snprintf(process.host, sizeof process.host, "unknown");
    for (char *c = process.host; *c; c++)
        if (*c == '/' || *c == '.')
            *c = '-';
}

/* Creates the meta file under a name of its own: a process that calls exec() keeps its id. */
static bool create_meta(const char *directory)
{
    for (int namesake = 1; namesake <= MOST_NAMESAKES; namesake++) {
        char suffix[16] = "";
        if (namesake > 1)
            snprintf(suffix, sizeof suffix, "_%d", namesake);
        if (asprintf(&process.stem, "%s/%s.%d%s", directory, process.host, (int)getpid(),
                     suffix) < 0)
            return false;
        if (asprintf(&process.meta, "%s.meta", process.stem) < 0)
            return false;
        int file = open(process.meta, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0) {
            /* Room to say later that the disk is full. Not every file system can do so. */
            if (within_limit(file, META_RESERVED))
                (void)fallocate(file, FALLOC_FL_KEEP_SIZE, 0, META_RESERVED);
            close(file);
            return true;
        }
        int why = errno;
        free(process.stem);
        free(process.meta);
        process.stem = process.meta = NULL;
        errno = why;
        if (why != EEXIST)
            return false;
    }
    return false;
}

static void before_fork(void)
{
    process_lock();
}

static void in_parent(void)
{
    process_unlock();
}

/* The windows are not there in a child (MADV_DONTFORK), and what it does is another program. */
static void in_child(void)
{
    process_unlock();
    if (atomic_load(&phase) == RECORDING)
        atomic_store(&phase, OVER);
    this_thread = NULL;
}

static void thread_end(void *thread)
{
    struct thread *t = thread;
    ended = true;
    this_thread = NULL;
    if (put_rest) {
        room(t, REST);
        put_rest(t, now());
    }
    put(t, now(), END, 0, 0, 0, 0);
    settle(t);
    process_lock();
    if (atomic_load(&phase) == RECORDING) {
        buffer_close(t);
        usage_tell(t);
    }
    t->has_usage = false;
    if (!t->stopped || t->summary)
        munmap(t->window, t->window_size);
    free(t->summary);
    t->summary = NULL;
    t->stopped = true;
    free(t->scratch[0]);
    free(t->scratch[1]);
    process_unlock();
}

static const char *directory_wanted(void)
{
    const char *given = getenv("POPMODEL_TRACE_DIR");
    return given && *given ? given : NULL;
}

bool process_wanted(void)
{
    return directory_wanted() != NULL;
}

/* POPMODEL_TRACE_MAX_SIZE. */
static void limit_size(void)
{
    const char *given = getenv("POPMODEL_TRACE_MAX_SIZE");
    if (!given || !*given)
        return;
    char *rest;
    errno = 0;
    unsigned long long most = strtoull(given, &rest, 10);
    if (errno == 0 && *rest == '\0' && *given >= '1' && *given <= '9')
        process.most = most;
    else
        complain("POPMODEL_TRACE_MAX_SIZE=%s: must be a number of bytes; using no limit", given);
}

void process_share(int processes)
{
    process_lock();
    process.most /= (unsigned)processes;
    process_unlock();
}

static bool start(void)
{
    const char *given = directory_wanted();
    if (!given)
        return false;
    char *directory = realpath(given, NULL);
    name_host();
    if (!directory || !create_meta(directory)) {
        complain("POPMODEL_TRACE_DIR=%s: %s; nothing is recorded: set it to a directory that exists "
                 "and is writable",
                 given, strerror(errno));
        free(directory);
        return false;
    }
    free(directory);
    if (pthread_key_create(&at_thread_end, thread_end) != 0 ||
        pthread_atfork(before_fork, in_parent, in_child) != 0) {
        complain("%s: not enough memory; nothing is recorded", process.meta);
        return false;
    }
    limit_size();
    process.summing = summary_wanted();
    tell_start();
    return true;
}

bool process_start(void)
{
    int now_in = atomic_load(&phase);
    if (now_in != DORMANT)
        return now_in == RECORDING;
    int kept = errno;
    process_lock();
    bool first = atomic_load(&phase) == DORMANT;
    if (first)
        atomic_store(&phase, start() ? RECORDING : OVER);
    process_unlock();
    bool recording = atomic_load(&phase) == RECORDING;
    if (first && recording) {
        tell_surroundings();
        run_start_hooks();
        summary_begin();
    }
    errno = kept;
    return recording;
}

static void tell_thread(const struct thread *t, uint64_t begin)
{
    struct line line;
    line_begin(&line, "thread");
    line_number(&line, "number", t->number);
    line_number(&line, "tid", t->id);
    line_number(&line, "time", (int64_t)begin);
    line_cpus(&line);
    line_end(&line);
}

static void write_header(struct header *header, unsigned number, pid_t id, uint64_t begin)
{
    *header = (struct header){.mark = RAW_MARK,
                              .version = RAW_VERSION,
                              .header_size = sizeof(struct header),
                              .record_size = sizeof(struct record),
                              .process = (uint32_t)getpid(),
                              .thread = number,
                              .thread_id = (uint64_t)id,
                              .begin = begin};
    atomic_signal_fence(memory_order_release); /* a process killed here leaves no magic number */
    memcpy(header->magic, RAW_MAGIC, sizeof header->magic);
}

struct thread *thread_begin(void)
{
    if (ended || atomic_load(&phase) != RECORDING)
        return NULL;
    int kept = errno;
    struct thread *t = calloc(1, sizeof *t);
    if (!t) {
        note("not enough memory for a thread: it is not recorded");
        return NULL;
    }
    process_lock();
    t->number = thread_count;
    if (atomic_load(&phase) != RECORDING ||
        asprintf(&t->path, "%s.t%u.%s", process.stem, t->number,
                 process.summing ? "sums" : "raw") < 0) {
        process_unlock();
        free(t);
        return NULL;
    }
    thread_count++;
    t->id = (pid_t)syscall(SYS_gettid);
    buffer_open(t);
    t->following = threads;
    threads = t;
    process_unlock();

    uint64_t begin = now();
    if (!t->stopped || t->summary)
        write_header((struct header *)t->window, t->number, t->id, begin);
    tell_thread(t, begin);
    usage_begin(t);
    pthread_setspecific(at_thread_end, t);
    this_thread = t;
    if (t->number == 0 && watching() & PAUSED) /* switched off before the first record */
        put(t, begin, TRACING, 0, 0, 0, 0);
    errno = kept;
    return t;
}

void tracing(bool on)
{
    struct thread *t = atomic_load(&phase) == RECORDING ? thread_here() : NULL;
    if (process.summing) /* sums are of all that the program does */
        return;
    int before = on ? atomic_fetch_and(&watch, ~PAUSED) : atomic_fetch_or(&watch, PAUSED);
    bool was_on = !(before & PAUSED);
    if (!t || was_on == on)
        return;
    room(t, 1);
    put(t, now(), TRACING, 0, on, 0, 0);
}

static void tell_end(const char *reason, uint64_t time)
{
    struct line line;
    line_begin(&line, "end");
    line_number(&line, "time", (int64_t)time);
    line_text(&line, "reason", reason);
    line_key(&line, "records");
    line_raw(&line, "{");
    for (const struct thread *t = threads; t; t = t->following) {
        char one[64];
        snprintf(one, sizeof one, "%s\"%u\":%" PRIu64, t == threads ? "" : ",", t->number,
                 t->records);
        line_raw(&line, one);
    }
    line_raw(&line, "}");
    line_end(&line);
}

void process_each(void (*what)(struct thread *))
{
    if (!process_try_lock())
        return;
    for (struct thread *t = threads; t; t = t->following)
        what(t);
    process_unlock();
}

bool process_has_thread(pid_t id)
{
    for (const struct thread *t = threads; t; t = t->following)
        if (t->id == id && t->has_usage)
            return true;
    return false;
}

void process_end(const char *reason)
{
    if (atomic_load(&phase) != RECORDING)
        return;
    struct thread *here = this_thread;
    this_thread = NULL;
    ended = true;
    if (here && here->summary) {
        put(here, now(), END, 0, 0, 0, 0);
        settle(here);
    }
    summary_end();
    /* exit() may be called by a signal's handler that interrupted one who holds the lock. */
    if (!process_try_lock())
        return;
    if (atomic_exchange(&phase, OVER) == RECORDING) {
        uint64_t time = now();
        /* There is always room for END; more of it cannot be made here. */
        if (here && put_rest && here->end - here->next >= REST)
            put_rest(here, time);
        if (here)
            put(here, time, END, 0, 0, 0, 0);
        for (struct thread *t = threads; t; t = t->following) {
            buffer_close(t);
            usage_tell(t);
        }
        notes_write();
        tell_end(reason, time);
    }
    process_unlock();
}

__attribute__((destructor)) static void at_exit(void)
{
    if (atomic_load(&phase) == RECORDING)
        devices_note();
    process_end("exit");
}
