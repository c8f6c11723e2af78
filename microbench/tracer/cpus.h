/* Which processors a thread may use, and how long it used them or waited for one. */
#ifndef POPMODEL_CPUS_H
#define POPMODEL_CPUS_H

#include "meta.h"
#include "state.h"

/* Adds the processors that the calling thread may use to a line. */
void line_cpus(struct line *);

/* Takes what a thread has used so far as its begin: of one that starts MPI, its end of that. */
void usage_begin(struct thread *);

/* Tells what a thread has used up to here, and nothing at its end: what MPI takes to stop. */
void usage_end(struct thread *);

/* Tells the meta file what the thread has used since then; of one that is there still. */
void usage_tell(const struct thread *);

#endif
