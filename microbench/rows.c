/* Loops over rows, as programs have them: short ones inside others, as fast as instructions go.
 *
 *   row turns=T       a row of T vectors of two doubles to which a multiple of another is added,
 *                     again and again, all in the first-level cache. What rows of different
 *                     lengths take beside their turns is what their ends cost: cores foresee the
 *                     end of a loop of few turns, and lose what they began where they do not.
 *                     work = instructions of a turn, where they have been counted
 *   issue bytes=B     such rows of a matrix of B bytes, each added to one row that stays in the
 *                     first-level cache: how far transfers hide behind instructions. Three times,
 *                     as of the job `mixed`: "seconds" of both, "reference" of reading the matrix
 *                     alone, "arithmetic" of rows in the first-level cache. moved = bytes read.
 *                     Some cores are slower for most of a millisecond after the wide vectors that
 *                     read: before its time is taken, as much of the rows in the cache goes by
 *   narrow_update bytes=B
 *                     every element of an array of B bytes is read, added to, and written back:
 *                     where a cache ends for such loops, which feel each line that is lost more than
 *                     those with wide vectors, since a core works on fewer lines at a time. One
 *                     operation is a pass over the array. moved = bytes of the array
 *
 * One operation of the others is a row. The loops are those of a compiler without instructions of a
 * special processor: vectors of 16 bytes, a turn for each. */
#include <stdlib.h>

#include "clock.h"
#include "node.h"
#include "team.h"
#include "vectors.h"

typedef double pair __attribute__((vector_size(16)));

/* Turns of a row of `issue`: of 8 KiB, so that both stay in the cache, and ends are few: after one
 * that a core does not foresee, it asks for what it needs next later than it could. */
enum { ISSUE_TURNS = 512, WORDS = 2 * ISSUE_TURNS };
enum { MOST_TURNS = 512 };
/* Two loads, a multiplication, an addition, a store; two sums, comparison and jump, of which one
 * load is part of the addition. */
#ifdef __x86_64__
enum { TURN_INSTRUCTIONS = 8 };
#else
enum { TURN_INSTRUCTIONS = 0 };
#endif
static const double SETTLED = 1e-3; /* seconds */

struct rows {
    struct vectors vectors;
    pair *sum, *small, *matrix; /* a row each, and `count` of them */
    long turns, count, at;      /* of a row; rows; the next one */
};

static void add_row(pair *sum, const pair *row, pair factor, long turns)
{
    const pair *end = row + turns;
    do {
        *sum += factor * *row;
        sum++;
        row++;
        __asm__ volatile("" : "+r"(sum), "+r"(row)); /* no two turns at once */
    } while (row != end);
}

static const pair FACTOR = {1e-9, 1e-9};

static double row_batch(void *state, long inner)
{
    const struct rows *rows = state;
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        add_row(rows->sum, rows->small, FACTOR, rows->turns);
    return clock_now() - start;
}

static const pair *next_row(struct rows *rows)
{
    const pair *row = rows->matrix + rows->at * ISSUE_TURNS;
    rows->at = rows->at + 1 < rows->count ? rows->at + 1 : 0;
    return row;
}

/* Rows in the cache until the core has forgotten the wide vectors of what came before. */
static void settle(struct rows *rows)
{
    for (double start = clock_now(); clock_now() - start < SETTLED;)
        add_row(rows->sum, rows->small, FACTOR, ISSUE_TURNS);
}

static double matrix_batch(void *state, long inner)
{
    struct rows *rows = state;
    settle(rows);
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        add_row(rows->sum, next_row(rows), FACTOR, ISSUE_TURNS);
    return clock_now() - start;
}

static double reading_batch(void *state, long inner)
{
    struct rows *rows = state;
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        rows->vectors.load((const double *)next_row(rows), WORDS, 1);
    return clock_now() - start;
}

static double update_batch(void *state, long inner)
{
    struct rows *rows = state;
    double start = clock_now();
    for (long i = 0; i < inner; i++) {
        pair *at = rows->matrix, *end = at + rows->count * ISSUE_TURNS;
        do {
            *at += FACTOR;
            at++;
            __asm__ volatile("" : "+r"(at));
        } while (at != end);
    }
    return clock_now() - start;
}

static pair *filled(size_t bytes)
{
    pair *row = aligned_reserve(bytes);
    for (size_t i = 0; row && i < bytes / sizeof *row; i++)
        row[i] = (pair){1, 1};
    return row;
}

/* A row that is added to, one that is added, and a matrix of some bytes. Returns 0, or -1 with the
 * reason in `absent`. */
static int reserve(struct rows *rows, long turns, long bytes, struct result *absent)
{
    size_t row = (size_t)turns * sizeof(pair);
    *rows = (struct rows){.vectors = widest_vectors(), .turns = turns};
    rows->count = bytes / (long)row;
    rows->sum = filled(row);
    rows->small = filled(row);
    rows->matrix = bytes ? filled((size_t)bytes) : NULL;
    if (rows->sum && rows->small && (rows->matrix || !bytes))
        return 0;
    *absent = result_absent("not enough memory for a matrix of %ld bytes", bytes);
    return -1;
}

static void release(struct rows *rows)
{
    free(rows->sum);
    free(rows->small);
    free(rows->matrix);
}

static struct result run_row(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    struct rows rows;
    struct result result = {0};
    if (!reserve(&rows, job_integer(job, "turns", 0), 0, &result)) {
        result.batches = measure(plan, row_batch, NULL, &rows);
        result.work = TURN_INSTRUCTIONS;
    }
    release(&rows);
    return result;
}

static struct result run_issue(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    struct rows rows;
    struct result result = {0};
    struct plan part = *plan;
    if (!reserve(&rows, ISSUE_TURNS, job_integer(job, "bytes", 0), &result)) {
        part.budget = plan->budget / 4; /* rows in the cache are steadier than what they serve */
        result.arithmetic = measure(&part, row_batch, NULL, &rows);
        part.budget = plan->budget - part.budget;
        if (result.arithmetic.n)
            result.batches = measure(&part, matrix_batch, reading_batch, &rows);
        result.moved = WORDS * sizeof(double);
    }
    release(&rows);
    return result;
}

static struct result run_narrow_update(const struct job *job, const struct plan *plan, void *context)
{
    (void)context;
    struct rows rows;
    struct result result = {0};
    if (!reserve(&rows, ISSUE_TURNS, job_integer(job, "bytes", 0), &result)) {
        result.batches = measure(plan, update_batch, NULL, &rows);
        result.moved = (double)(rows.count * ISSUE_TURNS) * sizeof(pair);
    }
    release(&rows);
    return result;
}

static const struct key ROW_KEYS[] = {{"turns", INTEGER, 1, 1, MOST_TURNS, NULL}, {0}};
static const struct key BYTES_KEYS[] = {{"bytes", INTEGER, 1, 8192, 1L << 36, NULL}, {0}};

const struct job_kind row_jobs[] = {
    {"row", ROW_KEYS, NULL, run_row},
    {"issue", BYTES_KEYS, NULL, run_issue},
    {"narrow_update", BYTES_KEYS, NULL, run_narrow_update},
    {0},
};
