/* The file HOST.PID.meta beside a process's records: one JSON object per line and event.
 *
 *     struct line line;
 *     line_begin(&line, "mpi");
 *     line_number(&line, "rank", rank);
 *     line_text(&line, "library", version);
 *     line_end(&line);
 *
 * A line is appended by one write, so that threads need no lock and a crash cuts no line. No file
 * stays open: a program that closes all descriptors must not make us write into a file of its own.
 */
#ifndef POPMODEL_META_H
#define POPMODEL_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line {
    char *at; /* `small`, or allocated */
    size_t length, room;
    bool lost; /* there was no memory for it */
    char small[512];
};

void line_begin(struct line *, const char *event);
void line_key(struct line *, const char *key);
void line_text(struct line *, const char *key, const char *value); /* NULL: null */
void line_number(struct line *, const char *key, int64_t value);
void line_hexadecimal(struct line *, const char *key, uint64_t value);
void line_numbers(struct line *, const char *key, const int *values, size_t n);
void line_end(struct line *); /* appends the line to the file and frees it */

/* For values of other shapes, after line_key(). */
void line_raw(struct line *, const char *text);
void line_string(struct line *, const char *bytes);

/* Counts something seen but not understood; written as {"event":"note"} once the process ends, and
 * when it is first seen, since the process may not end well. `text` must be a constant. */
void note(const char *text);
void notes_write(void);

/* Whether a file may grow by so much: the limit of the shell (ulimit -f) is a signal otherwise, and
 * that signal would end the program. Sets errno. */
bool within_limit(int file, size_t more);

/* One line on standard error, in one write. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
