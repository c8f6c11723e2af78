/* The meta file: see meta.h. */
#define _GNU_SOURCE
#include "meta.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process.h"

static void add(struct line *line, const char *bytes, size_t n)
{
    if (line->length + n > line->room && !line->lost) {
        size_t room = 2 * (line->length + n);
        char *more = malloc(room);
        if (!more) {
            line->lost = true;
            return;
        }
        memcpy(more, line->at, line->length);
        if (line->at != line->small)
            free(line->at);
        line->at = more;
        line->room = room;
    }
    if (line->lost)
        return;
    memcpy(line->at + line->length, bytes, n);
    line->length += n;
}

void line_raw(struct line *line, const char *text)
{
    add(line, text, strlen(text));
}

/* Length of the UTF-8 character at `s`, 0 if it is none. */
static size_t character(const unsigned char *s)
{
    if (*s < 0x80)
        return 1;
    size_t n = 0;
    if (*s >= 0xc2 && *s < 0xf5)
        n = *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90);
    bool surrogate = *s == 0xed && s[1] > 0x9f;
    bool beyond = *s == 0xf4 && s[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : n;
}

/* Names of files need not be UTF-8; JSON has to be: other bytes become the character U+00XX. */
void line_string(struct line *line, const char *bytes)
{
    add(line, "\"", 1);
    for (const unsigned char *s = (const unsigned char *)bytes; *s;) {
        size_t n = character(s);
        if (n == 0 || *s < 0x20 || *s == 0x7f) {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", *s++);
            add(line, escape, 6);
        } else {
            if (*s == '"' || *s == '\\')
                add(line, "\\", 1);
            add(line, (const char *)s, n);
            s += n;
        }
    }
    add(line, "\"", 1);
}

void line_begin(struct line *line, const char *event)
{
    line->at = line->small;
    line->room = sizeof line->small;
    line->length = 0;
    line->lost = false;
    line_raw(line, "{\"event\":");
    line_string(line, event);
}

void line_key(struct line *line, const char *key)
{
    line_raw(line, ",\"");
    line_raw(line, key);
    line_raw(line, "\":");
}

void line_text(struct line *line, const char *key, const char *value)
{
    line_key(line, key);
    if (value)
        line_string(line, value);
    else
        line_raw(line, "null");
}

void line_number(struct line *line, const char *key, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    line_key(line, key);
    line_raw(line, digits);
}

void line_hexadecimal(struct line *line, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "\"%016" PRIx64 "\"", value);
    line_key(line, key);
    line_raw(line, digits);
}

void line_numbers(struct line *line, const char *key, const int *values, size_t n)
{
    line_key(line, key);
    for (size_t i = 0; i < n; i++) {
        char digits[16];
        snprintf(digits, sizeof digits, "%c%d", i ? ',' : '[', values[i]);
        line_raw(line, digits);
    }
    line_raw(line, n ? "]" : "[]");
}

bool within_limit(int file, size_t more)
{
    struct rlimit limit;
    struct stat is;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return true;
    if (fstat(file, &is) != 0)
        return false;
    if ((uint64_t)is.st_size + more <= limit.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}

/* Appends all of it, or as much as the file system takes; the descriptor lives as long as this. */
static bool append(const char *bytes, size_t n)
{
    int file = open(process.meta, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return false;
    bool fits = within_limit(file, n);
    while (fits && n > 0) {
        ssize_t wrote = write(file, bytes, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break;
        bytes += wrote;
        n -= (size_t)wrote;
    }
    int why = errno;
    close(file);
    errno = why;
    return n == 0;
}

void line_end(struct line *line)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    int kept = errno;
    line_raw(line, "}\n");
    errno = ENOMEM;
    if ((line->lost || !append(line->at, line->length)) && !atomic_flag_test_and_set(&told))
        complain("%s: %s; the trace of this process is incomplete", process.meta,
                 strerror(errno));
    if (line->at != line->small)
        free(line->at);
    errno = kept;
}

#define NOTES 32
static struct {
    const char *_Atomic text;
    _Atomic long count;
} notes[NOTES];

static void note_write(const char *text, long count)
{
    struct line line;
    line_begin(&line, "note");
    line_text(&line, "text", text);
    line_number(&line, "count", count);
    line_end(&line);
}

void note(const char *text)
{
    for (int i = 0; i < NOTES; i++) {
        const char *there = atomic_load(&notes[i].text);
        if (!there && atomic_compare_exchange_strong(&notes[i].text, &there, text))
            there = text;
        if (strcmp(there, text) == 0) {
            if (atomic_fetch_add(&notes[i].count, 1) == 0)
                note_write(text, 1);
            return;
        }
    }
}

void notes_write(void)
{
    for (int i = 0; i < NOTES && atomic_load(&notes[i].text); i++)
        if (atomic_load(&notes[i].count) > 1)
            note_write(atomic_load(&notes[i].text), atomic_load(&notes[i].count));
}

void complain(const char *format, ...)
{
    char text[1024] = "popmodel: ";
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(text + length, sizeof text - length - 1, format, arguments);
    va_end(arguments);
    length += (size_t)more < sizeof text - length - 1 ? (size_t)more : sizeof text - length - 2;
    text[length++] = '\n';
    /* Nothing better can be done where standard error is closed. */
    ssize_t wrote = write(STDERR_FILENO, text, length);
    (void)wrote;
}
