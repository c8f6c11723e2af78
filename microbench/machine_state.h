/* What else the machine did while a job was measured: time stolen by the hypervisor, other
 * programs' share of the processors, involuntary context switches. A profile made beside a busy
 * neighbour has to be recognisable. */
#ifndef POPMODEL_MACHINE_STATE_H
#define POPMODEL_MACHINE_STATE_H

#define POPMODEL_SNAPSHOTS 64

/* What processes of this program used so far. */
struct usage {
    double cpu;       /* seconds, user and system */
    long involuntary; /* context switches that the kernel forced */
};

/* This process alone. */
struct usage own_usage(void);

struct snapshot {
    double when;  /* clock_now() */
    double busy;  /* seconds that the watched processors were not idle */
    double steal; /* seconds that the hypervisor took from them */
    struct usage usage;
};

/* Remembers snapshots, because the kernel counts processor time in ticks of about 10 ms and a job
 * may be shorter. */
struct watch {
    unsigned char *cpus; /* 1 for every processor that is watched, by its number */
    long size, count;    /* of `cpus`; processors watched */
    struct snapshot first, snapshots[POPMODEL_SNAPSHOTS];
    long taken;
};

struct state {
    long involuntary; /* since the snapshot before */
    double steal;     /* seconds since the snapshot before */
    double foreign;   /* 0..1: see watch_state; NAN if it cannot be told yet */
};

/* Watches the processors in a list such as "0-3,8" (NULL: those this process may run on). */
struct watch watch_open(const char *cpu_list);

/* Takes a snapshot; `usage` is that of all processes of this program on this node together. */
void watch_take(struct watch *, struct usage usage);

/* What happened between the last two snapshots. `foreign` is the part of the watched processors'
 * time that others used, since the snapshot before or during the last quarter of a second,
 * whichever is longer. */
struct state watch_state(const struct watch *);

/* `foreign` of the whole time since the first snapshot: jobs that are all short have none of their
 * own. NAN if even that is too short to tell. */
double watch_whole(const struct watch *);

void watch_close(struct watch *);

#endif
