/* Text that grows, and memory that is there or ends the program. */
#ifndef POPMODEL_TEXT_H
#define POPMODEL_TEXT_H

#include <stddef.h>

struct text {
    char *at; /* ends with a zero byte; NULL while nothing was added */
    size_t length, room;
};

#if defined(__GNUC__)
#define LIKE_PRINTF(template, first) __attribute__((format(printf, template, first)))
#else
#define LIKE_PRINTF(template, first)
#endif

void text_add(struct text *, const char *format, ...) LIKE_PRINTF(2, 3);

/* Adds `length` bytes as they are. */
void text_add_bytes(struct text *, const char *bytes, size_t length);

/* Adds a JSON string with its quotes, or null for NULL. Bytes outside ASCII are written as the
 * Latin-1 characters of that number, so that the result is valid JSON whatever the bytes were. */
void text_add_json(struct text *, const char *string);

/* Adds a list of numbers in brackets, five significant digits each. */
void text_add_numbers(struct text *, const double *numbers, long n);

void text_free(struct text *);

/* realloc() that ends the program with a message where there is no memory left. */
void *memory_resize(void *block, size_t bytes);

/* strdup() of the same kind. */
char *text_copy(const char *string);

/* A whole file, NULL if it cannot be read (errno says why). Works for files of /proc and /sys,
 * whose size is unknown. */
char *file_read(const char *path);

#endif
