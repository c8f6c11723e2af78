/* Which ranks take part in a measurement, from where the ranks are. Knows nothing of MPI, so that
 * a layout that is not at hand (several nodes, several sockets) can be tried on any machine. */
#ifndef POPMODEL_LAYOUT_H
#define POPMODEL_LAYOUT_H

enum tier { NEAR, NODE, NETWORK };

/* Where a rank is. */
struct place {
    int node;    /* first rank that is on the same node */
    int socket;  /* number of the socket, -1 where the rank may run on several */
    int sockets; /* sockets of its node */
};

/* Finds `pairs` disjoint pairs of ranks of one distance, all of them on the same socket (near), on
 * the same two sockets of a node (node), or on the same two nodes (network): pairs that share what
 * they contend for. Pair i is members[2 i] and members[2 i + 1]; the first such place in the order
 * of ranks is taken. `members` has room for 2 * pairs ranks. Returns NULL, or why there are none:
 * a sentence that stays valid for the whole run. */
const char *choose_pairs(const struct place *at, int ranks, enum tier tier, int pairs,
                         int *members);

/* Nodes on which the first `ranks` ranks are. */
int count_nodes(const struct place *at, int ranks);

/* The names of the tiers in their order, ending with NULL, and the tier of a name among them. */
extern const char *const TIERS[];
enum tier tier_named(const char *name);

#endif
