/* Adds up the records of a thread's file as summary.c does while it runs:
 *
 *     sums_of_records FILE.raw FILE.sums FROM TO
 *
 * From when MPI_Init has ended to the begin of MPI_Finalize, ns.
 */
#include "summary.c"

struct process process;
_Atomic int phase = RECORDING, watch;
__thread struct thread *this_thread;

void advance(struct thread *t) { (void)t; }
void cpus_tell(struct thread *t) { (void)t; }
void process_each(void (*what)(struct thread *)) { what(this_thread); }
bool process_has_thread(pid_t id) { return id != 0; }
void *map_first(struct thread *t, size_t size) { (void)t; return calloc(1, size); }
void line_begin(struct line *line, const char *event) { (void)line, (void)event; }
void line_key(struct line *line, const char *key) { (void)line, (void)key; }
void line_raw(struct line *line, const char *text) { (void)line, (void)text; }
void line_string(struct line *line, const char *text) { (void)line, (void)text; }
void line_text(struct line *l, const char *key, const char *value) { (void)l, (void)key, (void)value; }
void line_number(struct line *l, const char *key, int64_t value) { (void)l, (void)key, (void)value; }
void line_end(struct line *line) { (void)line; }

int main(int count, char **words)
{
    FILE *in = fopen(words[1], "rb"), *out = fopen(words[2], "wb");
    struct thread *t = calloc(1, sizeof *t);
    struct header header;
    struct record record;
    if (count != 5 || !in || !out || !t || fread(&header, sizeof header, 1, in) != 1)
        return 1;
    this_thread = t;
    process.summing = true;
    t->id = getpid();
    t->next = t->nowhere;
    if (!summary_open(t))
        return 1;
    uint64_t from = strtoull(words[3], NULL, 10), to = strtoull(words[4], NULL, 10);
    while (fread(&record, sizeof record, 1, in) == 1 && record.kind != 0) {
        if (from && record.time > from) {
            atomic_store(&window_from, from);
            if (t->summary->began && t->summary->sums->begin < from)
                begin_sums(t, from);
            from = 0;
        }
        if (record.time > to) {
            account(t->summary, to);
            break;
        }
        *t->next++ = record;
        settle(t);
    }
    fwrite(&header, sizeof header, 1, out);
    fwrite(t->summary->sums, SIZE - sizeof header, 1, out);
    return fclose(out) != 0;
}
