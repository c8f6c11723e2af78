/* Text that grows: see text.h. */
#define _POSIX_C_SOURCE 200809L
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *memory_resize(void *block, size_t bytes)
{
    void *resized = realloc(block, bytes > 0 ? bytes : 1);
    if (!resized) {
        fprintf(stderr,
                "popmodel: not enough memory for %zu bytes; use smaller sizes or fewer batches\n",
                bytes);
        exit(1);
    }
    return resized;
}

char *text_copy(const char *string)
{
    size_t size = strlen(string) + 1;
    return memcpy(memory_resize(NULL, size), string, size);
}

static void reserve(struct text *text, size_t more)
{
    size_t need = text->length + more + 1;
    if (need > text->room) {
        text->room = need < 256 ? 256 : 2 * need;
        text->at = memory_resize(text->at, text->room);
    }
}

void text_add_bytes(struct text *text, const char *bytes, size_t length)
{
    reserve(text, length);
    memcpy(text->at + text->length, bytes, length);
    text->length += length;
    text->at[text->length] = '\0';
}

void text_add(struct text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    reserve(text, (size_t)length);
    vsnprintf(text->at + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

void text_add_json(struct text *text, const char *string)
{
    if (!string) {
        text_add(text, "null");
        return;
    }
    text_add(text, "\"");
    for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
        if (*c == '"' || *c == '\\')
            text_add(text, "\\%c", *c);
        else if (*c < 0x20 || *c >= 0x7f)
            text_add(text, "\\u%04x", *c);
        else
            text_add_bytes(text, (const char *)c, 1);
    }
    text_add(text, "\"");
}

void text_add_numbers(struct text *text, const double *numbers, long n)
{
    text_add(text, "[");
    for (long i = 0; i < n; i++)
        text_add(text, i ? ",%.5g" : "%.5g", numbers[i]);
    text_add(text, "]");
}

void text_free(struct text *text)
{
    free(text->at);
    *text = (struct text){0};
}

char *file_read(const char *path)
{
    int file = open(path, O_RDONLY);
    if (file < 0)
        return NULL;
    struct text content = {0};
    char block[4096];
    for (;;) {
        ssize_t got = read(file, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int why = errno;
            close(file);
            text_free(&content);
            errno = why;
            return NULL;
        }
        if (got == 0)
            break;
        text_add_bytes(&content, block, (size_t)got);
    }
    close(file);
    return content.at ? content.at : text_copy("");
}
