/* An OpenMP program that counts what it does, and prints it as a line of JSON.
 *
 *     openmp THREADS WHAT [REPEATS]
 */
#define _GNU_SOURCE
#include <omp.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
    const char *name;
    long count;
} counts[64];

static void count_for(const char *name, long more)
{
    static char busy; /* not a lock of OpenMP's, which would be recorded */
    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE))
        ;
    int i = 0;
    while (counts[i].name && strcmp(counts[i].name, name) != 0)
        i++;
    counts[i].name = name;
    counts[i].count += more;
    __atomic_clear(&busy, __ATOMIC_RELEASE);
}

static void count(const char *name)
{
    count_for(name, 1);
}

static void report(void)
{
    printf("{");
    for (int i = 0; counts[i].name; i++)
        printf("%s\"%s\":%ld", i ? "," : "", counts[i].name, counts[i].count);
    printf("}\n");
}

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void spin(long ns)
{
    long until = now() + ns;
    while (now() < until)
        ;
}

#define ITERATIONS 100

/* Handed out in pieces: a request for each, and one of each thread that there are no more. */
static void share(void)
{
#pragma omp for schedule(dynamic, 7)
    for (int i = 0; i < ITERATIONS; i++)
        if (i % 7 == 0)
            count("requests");
    count("requests"), count("barriers");
#pragma omp for schedule(monotonic : dynamic, 9) nowait
    for (int i = 0; i < ITERATIONS; i++)
        if (i % 9 == 0)
            count("requests");
    count("requests");
#pragma omp for schedule(dynamic, 11) nowait
    for (unsigned long long i = 0; i < ITERATIONS; i++)
        if (i % 11 == 0)
            count("requests");
    count("requests");
#pragma omp for schedule(dynamic, 11) nowait
    for (long i = ITERATIONS; i > 0; i--)
        if (i % 11 == 1)
            count("requests");
    count("requests");
#pragma omp for schedule(runtime)
    for (int i = 0; i < ITERATIONS; i++)
        if (i % 6 == 0)
            count("requests");
    count("requests"), count("barriers");
}

static void loops(int threads)
{
    omp_set_schedule(omp_sched_dynamic, 6);
    /* Outside of any region; the process has recorded nothing yet. */
    int sum = 0;
#pragma omp for schedule(dynamic, 2)
    for (int i = 0; i < 10; i++)
        sum += i;
#pragma omp parallel num_threads(threads)
    {
        count("parts");
        share();
#pragma omp for schedule(static)
        for (int i = 0; i < ITERATIONS; i++)
            spin(10);
        count("barriers");
#pragma omp for schedule(static) nowait
        for (int i = 0; i < ITERATIONS; i++)
            spin(10);
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 8)
    for (int i = 0; i < ITERATIONS; i++)
        if (i % 8 == 0)
            count("requests");
    count_for("parts", threads), count_for("requests", threads);
    count_for("regions", 2);
    if (sum != 45)
        abort();
}

static void constructs(int threads)
{
    omp_lock_t lock;
    omp_nest_lock_t nested;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nested);
    int unnamed = 0, named = 0, locked = 0, again = 0; /* each with a lock of its own */
    count("regions");
#pragma omp parallel num_threads(threads)
    {
        count("parts");
        for (int i = 0; i < 5; i++) {
#pragma omp critical
            unnamed++;
            count("criticals");
#pragma omp critical(by_name)
            named++;
            count("criticals");
        }
#pragma omp barrier
        count("barriers");
#pragma omp single
        count("singles");
        count("barriers");
#pragma omp single nowait
        count("singles");
#pragma omp sections
        {
#pragma omp section
            spin(0);
#pragma omp section
            spin(100);
#pragma omp section
            spin(100);
        }
        count("shares"), count("barriers");
#pragma omp for ordered schedule(dynamic, 3)
        for (int i = 0; i < 10; i++) {
#pragma omp ordered
            count("ordered");
        }
        count("barriers");
        omp_set_lock(&lock);
        locked++;
        omp_unset_lock(&lock);
        count("locks");
        while (!omp_test_lock(&lock))
            ;
        locked++;
        omp_unset_lock(&lock);
        count("locks");
        omp_set_nest_lock(&nested);
        again++;
        omp_unset_nest_lock(&nested);
        count("locks");
    }
    count_for("sum", unnamed + named + locked + again);
}

static void sections(int threads)
{
    int done[4] = {0};
    count("regions"), count_for("parts", threads), count_for("shares", threads);
#pragma omp parallel sections num_threads(threads)
    {
#pragma omp section
        done[0]++;
#pragma omp section
        done[1]++;
#pragma omp section
        done[2]++;
#pragma omp section
        done[3]++;
    }
    count_for("sections", done[0] + done[1] + done[2] + done[3]);
}

static void copyprivate(int threads)
{
    int given = 0;
    count("regions");
#pragma omp parallel num_threads(threads) firstprivate(given)
    {
        count("parts");
#pragma omp single copyprivate(given)
        {
            given = 42;
            count("singles");
        }
        count_for("given", given);
    }
}

struct line {
    alignas(64) long value[8];
};

static long fibonacci(int n)
{
    long a, b;
    if (n < 2)
        return n;
    count_for("tasks", 2), count("taskwaits");
#pragma omp task shared(a) firstprivate(n)
    a = fibonacci(n - 1);
#pragma omp task shared(b) firstprivate(n)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

static void tasks(int threads)
{
    long sum = 0, loop = 0, misplaced = 0, fib = 0;
    struct line line = {{1, 2, 3, 4, 5, 6, 7, 8}};
    int depend = 0, length = 5, array[length];
    for (int i = 0; i < length; i++)
        array[i] = i;
    count("regions");
#pragma omp parallel num_threads(threads)
    {
        count("parts");
#pragma omp single
        {
            for (long i = 0; i < 50; i++) {
#pragma omp task firstprivate(i) shared(sum)
                __atomic_fetch_add(&sum, i, __ATOMIC_RELAXED);
            }
            count_for("tasks", 50);
            /* Data with an alignment of their own, and data that the program copies itself. */
#pragma omp task firstprivate(line) shared(misplaced, sum)
            {
                misplaced += (uintptr_t)&line % 64 != 0;
                __atomic_fetch_add(&sum, line.value[7], __ATOMIC_RELAXED);
            }
#ifndef __clang__ /* which does not know how */
#pragma omp task firstprivate(array) shared(sum)
#endif
            __atomic_fetch_add(&sum, array[4], __ATOMIC_RELAXED);
#ifndef __clang__
            count("tasks");
#endif
#pragma omp task if (0) shared(sum)
            __atomic_fetch_add(&sum, 100, __ATOMIC_RELAXED);
#pragma omp task final(1) shared(sum)
            __atomic_fetch_add(&sum, 100, __ATOMIC_RELAXED);
#pragma omp task untied priority(1) shared(sum)
            __atomic_fetch_add(&sum, 100, __ATOMIC_RELAXED);
#pragma omp task depend(out : depend) shared(depend)
            depend = 1;
#pragma omp task depend(in : depend) shared(sum)
            __atomic_fetch_add(&sum, 100 * depend, __ATOMIC_RELAXED);
            count_for("tasks", 6);
#pragma omp taskwait
            count("taskwaits");
#pragma omp taskgroup
            {
#pragma omp task shared(sum)
                __atomic_fetch_add(&sum, 1000, __ATOMIC_RELAXED);
            }
            count("tasks"), count("taskgroups");
#pragma omp taskloop num_tasks(4) shared(loop)
            for (int i = 0; i < 100; i++)
                __atomic_fetch_add(&loop, i, __ATOMIC_RELAXED);
#pragma omp taskloop num_tasks(5) nogroup shared(loop)
            for (unsigned long long i = 0; i < 100; i++)
                __atomic_fetch_add(&loop, (long)i, __ATOMIC_RELAXED);
#pragma omp taskloop num_tasks(3) reduction(+ : loop)
            for (long i = 100; i > 0; i--)
                loop += i;
            count_for("tasks", 12), count_for("loops", 3);
        }
#pragma omp single
        fib = fibonacci(8);
    }
    count_for("sum", sum), count_for("loop", loop), count_for("misplaced", misplaced);
    count_for("fibonacci", fib);
}

/* So many that the runtime carries them out as it makes them. */
static void many(int threads)
{
    long sum = 0;
    count("regions");
#pragma omp parallel num_threads(threads)
    {
        count("parts");
#pragma omp single
        {
#pragma omp taskloop grainsize(1) shared(sum)
            for (int i = 0; i < 100000; i++)
                __atomic_fetch_add(&sum, i, __ATOMIC_RELAXED);
            count_for("tasks", 100000);
        }
    }
    count_for("sum", sum);
}

static void detached(int threads)
{
    long sum = 0;
    count("regions");
#pragma omp parallel num_threads(threads)
    {
        count("parts");
#pragma omp single
        {
            omp_event_handle_t event;
#pragma omp task detach(event) shared(sum)
            {
                __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
                omp_fulfill_event(event);
            }
#pragma omp taskwait
            count_for("sum", sum);
        }
    }
}

static void nested(int threads)
{
    omp_set_max_active_levels(2);
    count("regions");
#pragma omp parallel num_threads(threads)
    {
        count("parts");
        count("regions");
#pragma omp parallel num_threads(2)
        {
            count("inner parts");
#pragma omp barrier
            count("barriers");
#pragma omp parallel num_threads(2) /* beyond the limit: a team of one */
            count("innermost parts");
            count("regions");
        }
    }
}

static void deeper(int levels)
{
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        count("regions");
        if (levels > 1)
            deeper(levels - 1);
    }
}

static void deep(int threads)
{
    omp_set_max_active_levels(1);
    deeper(40 + 0 * threads);
}

/* Says itself when each thread worked, which is the longer the higher its number. */
static void work(int threads)
{
    long begin[64], end[64];
#pragma omp parallel num_threads(threads)
    {
        int me = omp_get_thread_num();
        begin[me] = now();
        spin(20000000L * (me + 1));
        end[me] = now();
    }
    printf("{\"work\":[");
    for (int i = 0; i < threads; i++)
        printf("%s[%ld,%ld]", i ? "," : "", begin[i], end[i]);
    printf("]}\n");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int threads = atoi(argv[1]);
    static const struct {
        const char *name;
        void (*run)(int);
    } all[] = {{"loops", loops},       {"constructs", constructs},   {"sections", sections},
               {"tasks", tasks},       {"copyprivate", copyprivate}, {"nested", nested},
               {"detached", detached}, {"work", work},           {"many", many},
               {"deep", deep}};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        for (int k = 0; k < (argc > 3 ? atoi(argv[3]) : 1); k++)
            if (strcmp(argv[2], all[i].name) == 0)
                all[i].run(threads);
    if (strcmp(argv[2], "none") == 0) {
        omp_lock_t lock;
        omp_init_lock(&lock);
        omp_set_lock(&lock);
        omp_unset_lock(&lock);
        count_for("most", omp_get_max_threads() > 0);
    }
    if (strcmp(argv[2], "work") != 0)
        report();
    return 0;
}
