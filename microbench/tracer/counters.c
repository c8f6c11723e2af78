/* Hardware counters of each thread: instructions and cycles in user mode, by perf_event_open(2).
 *
 * Read at every change of a thread's state, together in one system call: where they are wanted, a
 * record costs some hundred nanoseconds more. Threads that the program makes later open their own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "meta.h"
#include "process.h"

static __thread struct {
    bool tried, open;
    int files[2]; /* instructions, which leads the group, and cycles */
} here __attribute__((tls_model("initial-exec")));
static pthread_key_t at_thread_end;

static int open_counter(uint64_t which, int group)
{
    struct perf_event_attr wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_HARDWARE;
    wanted.config = which;
    wanted.exclude_kernel = 1; /* what any user may count */
    wanted.exclude_hv = 1;
    wanted.read_format = PERF_FORMAT_GROUP;
    /* All the time or not at all: what is counted now and then would have to be guessed. */
    wanted.pinned = group == -1;
    return (int)syscall(SYS_perf_event_open, &wanted, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

/* Programs that close all they do not know reuse the lowest descriptors: ours is a high one, so
 * that reading it never takes what is theirs. */
static int moved_up(int file)
{
    struct rlimit limit;
    if (file < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return file;
    int least = limit.rlim_cur > 4096 ? 3072 : (int)(limit.rlim_cur / 4 * 3);
    int up = fcntl(file, F_DUPFD_CLOEXEC, least);
    if (up < 0)
        return file;
    close(file);
    return up;
}

static bool open_here(void)
{
    here.tried = true;
    here.files[0] = moved_up(open_counter(PERF_COUNT_HW_INSTRUCTIONS, -1));
    if (here.files[0] < 0)
        return false;
    here.files[1] = moved_up(open_counter(PERF_COUNT_HW_CPU_CYCLES, here.files[0]));
    here.open = here.files[1] >= 0;
    int why = errno;
    if (here.open)
        pthread_setspecific(at_thread_end, &here); /* anything but NULL */
    else
        close(here.files[0]);
    errno = why;
    return here.open;
}

static void close_here(void *ignored)
{
    (void)ignored;
    if (!here.open)
        return;
    here.open = false;
    close(here.files[1]);
    close(here.files[0]);
}

static void read_here(struct thread *t, uint64_t time)
{
    struct {
        uint64_t count, values[2];
    } got;
    if (UNLIKELY(!here.open)) {
        if (here.tried)
            return;
        int kept = errno;
        if (!open_here())
            note("threads whose hardware counters could not be opened");
        errno = kept;
        if (!here.open)
            return;
    }
    int kept = errno;
    if (read(here.files[0], &got, sizeof got) != sizeof got) {
        /* Closed by the program, or the processor's counters went to one who has more rights. */
        here.open = false;
        note("threads whose hardware counters could not be read to the end");
        errno = kept;
        return;
    }
    put(t, time, COUNTERS, 0, 0, (int64_t)got.values[0], (int64_t)got.values[1]);
}

static void explain(int why, char *text, size_t size)
{
    char level[16] = "unknown";
    FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    if (file) {
        if (fgets(level, sizeof level, file))
            level[strcspn(level, "\n")] = '\0';
        fclose(file);
    }
    if (why == EACCES || why == EPERM)
        snprintf(text, size,
                 "not permitted (kernel.perf_event_paranoid is %s, 2 or less is needed; "
                 "containers often forbid counters anyway)",
                 level);
    else if (why == ENOENT || why == EOPNOTSUPP || why == ENODEV)
        snprintf(text, size, "not available on this machine, as on most virtual machines");
    else
        snprintf(text, size, "they cannot be opened: %s", strerror(why));
}

static void tell(int why)
{
    char text[256];
    struct line line;
    line_begin(&line, "counters");
    if (why) {
        explain(why, text, sizeof text);
        line_text(&line, "why", text);
    } else {
        line_key(&line, "names");
        line_raw(&line, "[\"instructions\",\"cycles\"]");
    }
    line_end(&line);
}

static bool wanted(void)
{
    const char *given = getenv("POPMODEL_TRACE_COUNTERS");
    if (!given || !*given || strcmp(given, "0") == 0)
        return false;
    if (strcmp(given, "1") == 0)
        return true;
    complain("POPMODEL_TRACE_COUNTERS=%s: must be 0 or 1; using 0", given);
    return false;
}

static void begin(void)
{
    if (!wanted())
        return;
    int why = pthread_key_create(&at_thread_end, close_here);
    if (why == 0 && !open_here())
        why = errno;
    tell(why);
    if (why)
        return;
    put_counters = read_here;
    atomic_fetch_or(&watch, COUNTING);
}

__attribute__((constructor)) static void when_loaded(void)
{
    at_start(begin);
}
