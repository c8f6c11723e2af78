/* Windows: the part of a thread's file that is mapped and written to.
 *
 * The file is mapped shared, so that what was recorded is there whatever becomes of the process.
 * Its blocks are reserved before they are mapped: on a full disk reserving fails, while storing
 * into a hole would end the program with a bus error. They are filled with zeros by write(): that
 * brings the pages in at once, several times faster than page faults do. Windows grow with the
 * file: a thread that records little takes little room. The first of a process is larger, as it is
 * made while MPI starts, outside of what is analysed. A new window begins in the page where the old
 * one was left, so that the records follow each other without a gap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cpus.h"
#include "meta.h"
#include "process.h"
#include "summary.h"

#define SMALLEST_WINDOW ((size_t)64 << 10) /* a multiple of every page size in use */
#define FIRST_WINDOW ((size_t)1 << 20)
#define LARGEST_WINDOW ((size_t)2 << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Fills a new part of the file with zeros: what it holds already is kept. */
static bool fill(int file, uint64_t from, uint64_t to)
{
    static const char zeros[SMALLEST_WINDOW];
    while (from < to) {
        size_t most = to - from < sizeof zeros ? (size_t)(to - from) : sizeof zeros;
        ssize_t done = pwrite(file, zeros, most, (off_t)from);
        if (done < 0 && errno != EINTR)
            return false;
        from += done > 0 ? (uint64_t)done : 0;
    }
    return true;
}

/* Reserves the blocks of the file from there on. */
static bool reserve(int file, uint64_t offset, size_t more)
{
    struct stat is;
    if (fstat(file, &is) != 0)
        return false;
    uint64_t size = offset + more;
    if (size > (uint64_t)is.st_size && !within_limit(file, size - (uint64_t)is.st_size))
        return false;
    int why;
    do
        why = posix_fallocate(file, (off_t)offset, (off_t)more);
    while (why == EINTR);
    errno = why;
    return why == 0 && fill(file, (uint64_t)is.st_size > offset ? (uint64_t)is.st_size : offset, size);
}

static void *map(struct thread *t, uint64_t offset, size_t size)
{
    int file = open(t->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return NULL;
    void *at = MAP_FAILED;
    if (reserve(file, offset, size))
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    int why = errno;
    close(file);
    errno = why;
    if (at == MAP_FAILED)
        return NULL;
    /* Not worth an error: without them a forked child holds the pages, and they fault in one by
     * one. */
    (void)madvise(at, size, MADV_DONTFORK);
    (void)madvise(at, size, MADV_POPULATE_WRITE);
    return at;
}

/* The last record of a window is kept for END: whoever ends the recording may have interrupted one
 * who takes more room, and must not wait for it. */
static struct record *end_of(char *window, size_t size)
{
    return (struct record *)(window + size) - 1;
}

static uint64_t position(const struct thread *t)
{
    return t->offset + (uint64_t)((char *)t->next - t->window);
}

static void count(struct thread *t)
{
    t->records = (position(t) - sizeof(struct header)) / sizeof(struct record);
}

static void nowhere(struct thread *t)
{
    t->stopped = true;
    t->missed = t->tried = NULL;
    t->next = t->nowhere;
    t->end = t->nowhere + MOST_ROOM;
}

static void tell_lost(const struct thread *t, const char *why, bool limited)
{
    struct line line;
    line_begin(&line, "full");
    line_number(&line, "thread", t->number);
    line_number(&line, "lost_from", (int64_t)now());
    line_text(&line, "why", why);
    line_number(&line, "limited", limited);
    line_end(&line);
}

/* The user wants no more records than that: told once for all threads. */
static void tell_limit(const struct thread *t)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    tell_lost(t, "the limit of POPMODEL_TRACE_MAX_SIZE", true);
    if (!atomic_flag_test_and_set(&told))
        complain("%s: this process has reached its share of --max-size, %" PRIu64
                 " bytes; the rest of its run is not recorded",
                 process.meta, process.most);
}

static void tell_full(const struct thread *t, int why)
{
    tell_lost(t, strerror(why), false);
    complain("%s: %s; the rest of this thread is not recorded: free some space or set "
             "POPMODEL_TRACE_DIR to another directory",
             t->path, strerror(why));
}

/* Cuts the file to what was recorded. The thread may still be running (at the exit of the process):
 * what it stores from now on goes into memory that is nobody's, in place of the file's. */
static void cut(struct thread *t)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t used = (size_t)((char *)t->next - t->window);
    size_t kept = (used + page - 1) / page * page;
    uint64_t length = position(t);
    if (kept < t->window_size &&
        mmap(t->window + kept, t->window_size - kept, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return; /* no memory for it: the file keeps its tail of zeros, which readers know */
    int file = open(t->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)length) != 0)
        note("a file could not be truncated to its length; it ends with zeros");
    if (file >= 0)
        close(file);
}

void *map_first(struct thread *t, size_t size)
{
    int file = open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0)
        return NULL;
    close(file);
    return map(t, 0, size);
}

void buffer_open(struct thread *t)
{
    t->offset = 0;
    if (process.summing && summary_open(t)) {
        nowhere(t);
        t->end = t->next; /* every group of records finds it full, and is added up */
        return;
    }
    t->window_size = t->number || process.most ? SMALLEST_WINDOW : FIRST_WINDOW;
    t->window = process.summing ? NULL : map_first(t, t->window_size);
    if (!t->window && t->window_size == FIRST_WINDOW) { /* the disk or a limit may be small */
        t->window_size = SMALLEST_WINDOW;
        t->window = map(t, 0, t->window_size);
    }
    if (!t->window) {
        int why = errno;
        nowhere(t);
        tell_full(t, why);
        return;
    }
    process.taken += t->window_size;
    t->since = now();
    t->begun = t->next = (struct record *)(t->window + sizeof(struct header));
    t->end = end_of(t->window, t->window_size);
}

/* Size of the next window, which begins there: as large as the limit leaves room for, or 0. */
static size_t window_wanted(const struct thread *t, uint64_t offset)
{
    size_t size = t->window_size < LARGEST_WINDOW ? 2 * t->window_size : t->window_size;
    if (process.most == 0)
        return size;
    uint64_t left = process.most > process.taken ? process.most - process.taken : 0;
    uint64_t there = t->offset + t->window_size - offset; /* of the file already */
    uint64_t most = (there + left) / SMALLEST_WINDOW * SMALLEST_WINDOW;
    if (most < size)
        size = (size_t)most;
    return size > there ? size : 0;
}

/* Called when there is too little room: maps the next window. */
void advance(struct thread *t)
{
    if (t->summary) {
        summary_fold(t);
        return;
    }
    int kept = errno;
    if (t->stopped) {
        nowhere(t);
        return;
    }
    process_lock();
    uint64_t from = now();
    count(t);
    t->missed = t->tried = NULL; /* it can no longer be taken back */
    if (atomic_load(&phase) != RECORDING) {
        nowhere(t);
        process_unlock();
        return;
    }
    uint64_t at = position(t);
    uint64_t offset = at / SMALLEST_WINDOW * SMALLEST_WINDOW;
    size_t size = window_wanted(t, offset);
    char *window = size ? map(t, offset, size) : NULL;
    int why = errno, left = 0;
    if (window) {
        process.taken += offset + size - (t->offset + t->window_size);
        left = filter_look(t->begun, t->next, from - t->since);
        munmap(t->window, t->window_size);
        t->window = window;
        t->window_size = size;
        t->offset = offset;
        t->begun = t->next = (struct record *)(window + (at - offset));
        t->end = end_of(window, size);
        put(t, from, FLUSH_BEGIN, 0, 0, 0, 0);
        t->since = now();
        put(t, t->since, FLUSH_END, 0, 0, 0, 0);
        if (left)
            put(t, t->since, LEFT_OUT, left, 1, 0, 0);
    } else {
        cut(t);
        munmap(t->window, t->window_size);
        nowhere(t);
    }
    process_unlock();
    if (size == 0)
        tell_limit(t);
    else if (!window)
        tell_full(t, why);
    errno = kept;
}

void buffer_close(struct thread *t)
{
    cpus_tell(t);
    if (t->summary)
        summary_look(t);
    if (t->stopped)
        return;
    count(t);
    cut(t);
}
