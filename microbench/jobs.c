/* Parsing and checking of job lines: see jobs.h. */
#define _POSIX_C_SOURCE 200809L
#include "jobs.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct result result_absent(const char *reason, ...)
{
    struct result result = {0};
    va_list arguments;
    va_start(arguments, reason);
    vsnprintf(result.absent, sizeof result.absent, reason, arguments);
    va_end(arguments);
    return result;
}

const char *job_text(const struct job *job, const char *key, const char *fallback)
{
    for (int i = 0; i < job->count; i++)
        if (strcmp(job->parameters[i].key, key) == 0)
            return job->parameters[i].value;
    return fallback;
}

long job_integer(const struct job *job, const char *key, long fallback)
{
    const char *value = job_text(job, key, NULL);
    return value ? strtol(value, NULL, 10) : fallback;
}

double job_seconds(const struct job *job, const char *key, double fallback)
{
    const char *value = job_text(job, key, NULL);
    return value ? strtod(value, NULL) : fallback;
}

static const struct job_kind *find_kind(const char *name, const struct job_kind *const *kinds)
{
    for (; *kinds; kinds++)
        for (const struct job_kind *kind = *kinds; kind->name; kind++)
            if (strcmp(kind->name, name) == 0)
                return kind;
    return NULL;
}

static const struct key *find_key(const struct job_kind *kind, const char *name)
{
    for (const struct key *key = kind->keys; key && key->name; key++)
        if (strcmp(key->name, name) == 0)
            return key;
    return NULL;
}

static void say_known_kinds(struct text *error, const struct job_kind *const *kinds)
{
    const char *between = "; known: ";
    for (; *kinds; kinds++)
        for (const struct job_kind *kind = *kinds; kind->name; kind++, between = ", ")
            text_add(error, "%s%s", between, kind->name);
}

static void say_known_keys(struct text *error, const struct job_kind *kind)
{
    const char *between = "; known: ";
    if (!kind->keys || !kind->keys->name)
        text_add(error, "; it has none");
    for (const struct key *key = kind->keys; key && key->name; key++, between = ", ")
        text_add(error, "%s%s", between, key->name);
}

static int check_value(const struct job *job, const struct key *key, const char *value,
                       struct text *error)
{
    char *end;
    errno = 0;
    if (key->type == INTEGER) {
        long number = strtol(value, &end, 10);
        if (end == value || *end || errno || number < key->least || number > key->most) {
            text_add(error, "%s of %s must be a whole number from %ld to %ld, not '%s'",
                     key->name, job->kind->name, key->least, key->most, value);
            return -1;
        }
    } else if (key->type == SECONDS) {
        double number = strtod(value, &end);
        if (end == value || *end || !isfinite(number) || number < (double)key->least) {
            text_add(error, "%s of %s must be a number of seconds, at least %ld, not '%s'",
                     key->name, job->kind->name, key->least, value);
            return -1;
        }
    } else if (key->words) {
        for (const char *const *word = key->words; *word; word++)
            if (strcmp(*word, value) == 0)
                return 0;
        text_add(error, "%s of %s must be one of ", key->name, job->kind->name);
        for (const char *const *word = key->words; *word; word++)
            text_add(error, "%s%s", word == key->words ? "" : ", ", *word);
        text_add(error, ", not '%s'", value);
        return -1;
    }
    return 0;
}

/* One line without its comment, cut at blanks in place. Returns 1 for a job, 0 for an empty line,
 * -1 for an error. */
static int parse_line(struct job *job, char *line, const struct job_kind *const *kinds,
                      struct text *error)
{
    static const char BLANKS[] = " \t\r";
    char *rest = NULL, *name = strtok_r(line, BLANKS, &rest);
    if (!name)
        return 0;
    job->kind = find_kind(name, kinds);
    if (!job->kind) {
        text_add(error, "unknown job '%s'", name);
        say_known_kinds(error, kinds);
        return -1;
    }
    for (char *word; (word = strtok_r(NULL, BLANKS, &rest));) {
        char *equals = strchr(word, '=');
        if (!equals || equals == word || !equals[1]) {
            text_add(error, "'%s' of %s must be key=value", word, name);
            return -1;
        }
        *equals = '\0';
        const struct key *key = find_key(job->kind, word);
        if (!key) {
            text_add(error, "unknown key '%s' of %s", word, name);
            say_known_keys(error, job->kind);
            return -1;
        }
        if (job_text(job, word, NULL) || job->count == MOST_PARAMETERS) {
            text_add(error, "%s of %s is given twice", word, name);
            return -1;
        }
        if (check_value(job, key, equals + 1, error))
            return -1;
        job->parameters[job->count++] = (struct parameter){word, equals + 1};
    }
    for (const struct key *key = job->kind->keys; key && key->name; key++)
        if (key->required && !job_text(job, key->name, NULL)) {
            text_add(error, "%s needs %s=", name, key->name);
            return -1;
        }
    const char *wrong = job->kind->check ? job->kind->check(job) : NULL;
    if (wrong) {
        text_add(error, "%s: %s", name, wrong);
        return -1;
    }
    return 1;
}

int jobs_parse(struct job_list *list, const char *lines, const char *source,
               const struct job_kind *const *kinds, struct text *error)
{
    long number = 1;
    for (const char *start = lines; *start; number++) {
        size_t length = strcspn(start, "\n"), used = length;
        const char *comment = memchr(start, '#', length);
        if (comment)
            used = (size_t)(comment - start);
        struct text copy = {0};
        text_add_bytes(&copy, start, used);
        struct job job = {.line = copy.at};
        struct text why = {0};
        int found = parse_line(&job, job.line, kinds, &why);
        if (found == 1) {
            list->jobs = memory_resize(list->jobs, (size_t)(list->count + 1) * sizeof *list->jobs);
            list->jobs[list->count++] = job;
        } else {
            free(job.line);
        }
        if (found < 0) {
            text_add(error, "%s:%ld: %s", source, number, why.at);
            text_free(&why);
            return -1;
        }
        start += length + (start[length] == '\n');
    }
    return 0;
}

void jobs_free(struct job_list *list)
{
    for (long i = 0; i < list->count; i++)
        free(list->jobs[i].line);
    free(list->jobs);
    *list = (struct job_list){0};
}
