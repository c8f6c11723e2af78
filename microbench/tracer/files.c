/* Calls of POSIX and C that open, read or write files, where they are asked for
 * (POPMODEL_TRACE_FILES=1).
 *
 * Only threads that record already are looked at: what a library's own threads do is not the
 * program's. What MPI does inside its calls is MPI's, and what the tracer does is nobody's: it is
 * known by the address that it calls from. Calls of one kind on one descriptor that follow each
 * other within a microsecond are one: programs write lines and single numbers.
 *
 * A wrapper may be called by a signal's handler, and in children of any kind of fork: it waits for
 * no lock, keeps errno, and leaves nothing open that jumping out of it would leave behind.
 */
#undef _FORTIFY_SOURCE /* its functions are wrapped here */
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "meta.h"
#include "process.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define NEAR 1000u /* ns between calls that are one */

static bool wanted;
static volatile char *here; /* 0 in every child, however it was made */
static uintptr_t own_begin, own_end; /* of the tracer's code */

static int find_own(struct dl_phdr_info *info, size_t size, void *ignored)
{
    (void)size, (void)ignored;
    const uintptr_t inside = (uintptr_t)&find_own;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type == PT_LOAD && begin <= inside && inside < end) {
            own_begin = begin;
            own_end = end;
            return 1;
        }
    }
    return 0;
}

static void begin(void)
{
    const char *given = getenv("POPMODEL_TRACE_FILES");
    if (!given || strcmp(given, "1") != 0 || process.summing)
        return;
    void *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 1, MADV_WIPEONFORK) != 0 ||
        !dl_iterate_phdr(find_own, NULL)) {
        complain("calls for files are not recorded: the system cannot tell children apart");
        return;
    }
    here = page;
    *here = 1;
    wanted = true;
}

__attribute__((constructor)) static void when_loaded(void)
{
    at_start(begin);
}

struct file_call {
    struct record *same; /* the end of a call that this one is taken as a part of, or NULL */
    uint64_t since;
};

/* The thread, if its call is to be recorded. */
static struct thread *file_begin(const void *caller)
{
    struct thread *t = this_thread;
    if (!t || t->depth > 0 || t->stopped || !*here || watching() & PAUSED || is_left_out(LEFT_IO))
        return NULL;
    if ((uintptr_t)caller - own_begin < own_end - own_begin)
        return NULL;
    if (t->end - t->next < 4) {
        if (!process_is_free()) /* this may be a handler that interrupted one who holds the lock */
            return NULL;
        advance(t);
    }
    return t;
}

static struct file_call file_enter(struct thread *t, enum file_call_kind kind, int file)
{
    struct file_call call = {NULL, now()};
    struct record *last = t->next - 1;
    if (last > t->begun && last->kind == FILE_LEAVE && last->call == kind &&
        last[-1].kind == FILE_ENTER && last[-1].a == (uint32_t)file &&
        call.since - last->time < NEAR)
        call.same = last;
    else
        put(t, call.since, FILE_ENTER, kind, (uint32_t)file, 0, 0);
    return call;
}

static void file_leave(struct thread *t, struct file_call call, enum file_call_kind kind,
                       int64_t moved)
{
    uint64_t time = now();
    struct record *last = call.same;
    if (!last) {
        if (t->end - t->next > 0)
            put(t, time, FILE_LEAVE, kind, 1, moved > 0 ? moved : 0, 0);
    } else if (last == t->next - 1) { /* nothing was recorded in between */
        last->a++;
        last->b += moved > 0 ? moved : 0;
        last->c += (int64_t)(call.since - last->time);
        last->time = time;
    }
}

#define NEXT_OF(name)                                                                             \
    static __typeof__(name) *next;                                                                \
    if (UNLIKELY(!__atomic_load_n(&next, __ATOMIC_RELAXED)))                                      \
        __atomic_store_n(&next, __extension__(__typeof__(name) *) dlsym(RTLD_NEXT, #name),        \
                         __ATOMIC_RELAXED)

#define CALLED(type, kind, file, moved, arguments)                                                \
    struct thread *t = UNLIKELY(wanted) ? file_begin(__builtin_return_address(0)) : NULL;         \
    if (LIKELY(!t))                                                                               \
        return next arguments;                                                                    \
    struct file_call call = file_enter(t, kind, file);                                            \
    type result = next arguments;                                                                 \
    int kept = errno;                                                                             \
    file_leave(t, call, kind, (int64_t)(moved));                                                  \
    errno = kept;                                                                                 \
    return result

#define FILE_WRAPPER(type, name, kind, file, moved, parameters, arguments)                        \
    EXPORTED type name parameters;                                                                \
    EXPORTED type name parameters                                                                 \
    {                                                                                             \
        NEXT_OF(name);                                                                            \
        CALLED(type, kind, file, moved, arguments);                                               \
    }

FILE_WRAPPER(ssize_t, read, FILE_READ, file, result, (int file, void *to, size_t size),
             (file, to, size))
FILE_WRAPPER(ssize_t, write, FILE_WRITE, file, result, (int file, const void *from, size_t size),
             (file, from, size))
FILE_WRAPPER(ssize_t, pread, FILE_PREAD, file, result,
             (int file, void *to, size_t size, off_t place), (file, to, size, place))
FILE_WRAPPER(ssize_t, pwrite, FILE_PWRITE, file, result,
             (int file, const void *from, size_t size, off_t place), (file, from, size, place))
FILE_WRAPPER(ssize_t, pread64, FILE_PREAD, file, result,
             (int file, void *to, size_t size, off64_t place), (file, to, size, place))
FILE_WRAPPER(ssize_t, pwrite64, FILE_PWRITE, file, result,
             (int file, const void *from, size_t size, off64_t place), (file, from, size, place))
FILE_WRAPPER(ssize_t, readv, FILE_READV, file, result,
             (int file, const struct iovec *parts, int count), (file, parts, count))
FILE_WRAPPER(ssize_t, writev, FILE_WRITEV, file, result,
             (int file, const struct iovec *parts, int count), (file, parts, count))
FILE_WRAPPER(ssize_t, preadv, FILE_PREADV, file, result,
             (int file, const struct iovec *parts, int count, off_t place),
             (file, parts, count, place))
FILE_WRAPPER(ssize_t, pwritev, FILE_PWRITEV, file, result,
             (int file, const struct iovec *parts, int count, off_t place),
             (file, parts, count, place))
FILE_WRAPPER(int, close, FILE_CLOSE, file, 0, (int file), (file))
FILE_WRAPPER(int, fsync, FILE_SYNC, file, 0, (int file), (file))
FILE_WRAPPER(int, fdatasync, FILE_DATA_SYNC, file, 0, (int file), (file))

/* Descriptors of streams are asked for where a call is recorded: fileno() takes no lock. */
FILE_WRAPPER(size_t, fread, FILE_FREAD, fileno(from), result *size,
             (void *restrict to, size_t size, size_t count, FILE *restrict from),
             (to, size, count, from))
FILE_WRAPPER(size_t, fwrite, FILE_FWRITE, fileno(to), result *size,
             (const void *restrict from, size_t size, size_t count, FILE *restrict to),
             (from, size, count, to))
FILE_WRAPPER(FILE *, fopen, FILE_FOPEN, -1, 0,
             (const char *restrict name, const char *restrict mode), (name, mode))
FILE_WRAPPER(FILE *, fopen64, FILE_FOPEN, -1, 0,
             (const char *restrict name, const char *restrict mode), (name, mode))
FILE_WRAPPER(int, fclose, FILE_FCLOSE, fileno(stream), 0, (FILE *stream), (stream))
FILE_WRAPPER(int, fflush, FILE_FLUSH, stream ? fileno(stream) : -1, 0, (FILE *stream), (stream))

/* What _FORTIFY_SOURCE makes of them. */
FILE_WRAPPER(ssize_t, __read_chk, FILE_READ, file, result,
             (int file, void *to, size_t size, size_t room), (file, to, size, room))
FILE_WRAPPER(ssize_t, __pread_chk, FILE_PREAD, file, result,
             (int file, void *to, size_t size, off_t place, size_t room),
             (file, to, size, place, room))
FILE_WRAPPER(ssize_t, __pread64_chk, FILE_PREAD, file, result,
             (int file, void *to, size_t size, off64_t place, size_t room),
             (file, to, size, place, room))
FILE_WRAPPER(size_t, __fread_chk, FILE_FREAD, fileno(from), result *size,
             (void *restrict to, size_t room, size_t size, size_t count, FILE *restrict from),
             (to, room, size, count, from))
FILE_WRAPPER(int, __open_2, FILE_OPEN, -1, 0, (const char *name, int flags), (name, flags))
FILE_WRAPPER(int, __open64_2, FILE_OPEN, -1, 0, (const char *name, int flags), (name, flags))

/* The mode is there where a file may be made. */
#define MODE(flags)                                                                               \
    mode_t mode = 0;                                                                              \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) {                                \
        va_list more;                                                                             \
        va_start(more, flags);                                                                    \
        mode = va_arg(more, mode_t);                                                              \
        va_end(more);                                                                             \
    }

#define OPENS(name)                                                                               \
    EXPORTED int name(const char *path, int flags, ...)                                           \
    {                                                                                             \
        NEXT_OF(name);                                                                            \
        MODE(flags)                                                                               \
        CALLED(int, FILE_OPEN, -1, 0, (path, flags, mode));                                       \
    }
#define OPENS_AT(name)                                                                            \
    EXPORTED int name(int folder, const char *path, int flags, ...)                               \
    {                                                                                             \
        NEXT_OF(name);                                                                            \
        MODE(flags)                                                                               \
        CALLED(int, FILE_OPEN, -1, 0, (folder, path, flags, mode));                               \
    }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)
