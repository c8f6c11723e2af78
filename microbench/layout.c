/* Choice of the ranks that measure: see layout.h. */
#include "layout.h"

#include <string.h>

const char *const TIERS[] = {"near", "node", "network", NULL};

enum tier tier_named(const char *name)
{
    int tier = NEAR;
    while (tier < NETWORK && strcmp(name, TIERS[tier]) != 0)
        tier++;
    return (enum tier)tier;
}

/* The first n ranks from `from` on that are where `like` is (on its socket only if told so). */
static int gather(const struct place *at, int ranks, int from, struct place like, int by_socket,
                  int n, int *found)
{
    int have = 0;
    for (int r = from; r < ranks && have < n; r++) {
        if (at[r].node == like.node && (!by_socket || at[r].socket == like.socket))
            found[have++] = r;
    }
    return have;
}

/* Pairs within one group of ranks. */
static int pair_inside(const struct place *at, int ranks, int by_socket, int pairs, int *members)
{
    for (int r = 0; r < ranks; r++) {
        if (by_socket && at[r].socket < 0)
            continue;
        if (gather(at, ranks, r, at[r], by_socket, 2 * pairs, members) == 2 * pairs)
            return 1;
    }
    return 0;
}

/* Pairs between two groups: different sockets of a node, or different nodes. */
static int pair_between(const struct place *at, int ranks, int by_socket, int pairs, int *members)
{
    for (int r = 0; r < ranks; r++) {
        if (by_socket && at[r].socket < 0)
            continue;
        /* The first ranks of the pairs go to the front half of `members` until both are known. */
        if (gather(at, ranks, r, at[r], by_socket, pairs, members) < pairs)
            continue;
        for (int s = 0; s < ranks; s++) {
            int other_socket = at[s].node == at[r].node && at[s].socket != at[r].socket;
            int fits = by_socket ? other_socket && at[s].socket >= 0 : at[s].node != at[r].node;
            if (!fits || gather(at, ranks, s, at[s], by_socket, pairs, members + pairs) < pairs)
                continue;
            /* a a a b b b -> a b a b a b, by rotating the next b to its place */
            for (int i = 0; i < pairs; i++) {
                int b = members[pairs + i];
                int to = 2 * i + 1;
                memmove(members + to + 1, members + to,
                        (size_t)(pairs + i - to) * sizeof *members);
                members[to] = b;
            }
            return 1;
        }
    }
    return 0;
}

/* Why there is no pair on a socket, or between two: told from the ranks of the launch. */
static const char *why_no_socket(const struct place *at, int ranks, const char *otherwise)
{
    for (int r = 0; r < ranks; r++) {
        if (at[r].sockets > 1 && at[r].socket < 0)
            return "ranks are not bound to a socket";
    }
    return otherwise;
}

const char *choose_pairs(const struct place *at, int ranks, enum tier tier, int pairs,
                         int *members)
{
    int several_sockets = 0;
    for (int r = 0; r < ranks; r++)
        several_sockets = several_sockets || at[r].sockets > 1;
    if (tier == NETWORK) {
        if (pair_between(at, ranks, 0, pairs, members))
            return NULL;
        return pairs == 1 ? "no two ranks on different nodes"
                          : "no two nodes with one rank each per pair";
    }
    if (tier == NEAR || !several_sockets) {
        if (pair_inside(at, ranks, 1, pairs, members))
            return NULL;
        return why_no_socket(at, ranks,
                             pairs == 1 ? "no two ranks on one socket"
                                        : "no socket with two ranks per pair");
    }
    if (pair_between(at, ranks, 1, pairs, members))
        return NULL;
    return why_no_socket(at, ranks,
                         pairs == 1 ? "no two ranks on different sockets of a node"
                                    : "no two sockets of a node with one rank each per pair");
}

int count_nodes(const struct place *at, int ranks)
{
    int nodes = 0;
    for (int r = 0; r < ranks; r++)
        nodes += at[r].node == r;
    return nodes;
}
