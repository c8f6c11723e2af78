// Collectives as point-to-point messages, one step of one member at a time: nothing is laid out in
// advance, since the messages of an all-to-all grow with the square of its members.
//
// The algorithms are those that popmodel.simulator.algorithms names; tests/oracle/algorithms.py lays
// the same messages out in plain Python.
#pragma once

#include <algorithm>
#include <cstdint>

namespace popmodel {

// Numbers shared with popmodel.simulator.program.COLLECTIVES.
enum Kind : uint8_t {
    INIT,
    BARRIER,
    BCAST,
    REDUCE,
    ALLREDUCE,
    ALLTOALL,
    GATHER,
    SCATTER,
    ALLGATHER,
    SCAN,
    REDUCE_SCATTER,
    KINDS
};

// What a member does at the same time: a message out, a message in, or one of them.
struct Step {
    int32_t to = -1, source = -1; // ranks in the communicator, -1 for none
    int32_t arrives_in = 0;       // the step of `to` in which it receives the message
    int32_t size_out = 0;         // which of the collective's message sizes, see subtree_size
    int32_t size_in = 0;
};

inline int floor_log2(uint32_t n) {
    int log = 0;
    while (n >>= 1)
        log++;
    return log;
}

inline int ceil_log2(uint32_t n) { return n > 1 ? floor_log2(n - 1) + 1 : 0; }

// Trees send 1, 2, 4, ... parts to a subtree, or as many as are left: two sizes for each hop.
inline int32_t subtree_size(int log_hop, int64_t first, int64_t members) {
    return 2 * log_hop + (first + (int64_t(1) << log_hop) > members);
}

// How many message sizes a collective has, at most.
inline int32_t sizes(Kind kind, int32_t members) {
    return kind == GATHER || kind == SCATTER ? 2 * ceil_log2(uint32_t(members)) : 1;
}

// A binomial tree over ranks relative to the root. A member's parent is one hop away that is the
// lowest bit of its rank; its children are the shorter hops that stay inside.
struct Binomial {
    int parent;   // log2 of the hop to the parent; of the first hop beyond all, at the root
    int children; // their number: hops 2**0 to 2**(children - 1)

    Binomial(int32_t members, int32_t rank) {
        parent = ceil_log2(uint32_t(members));
        if (rank)
            for (parent = 0; !(rank >> parent & 1);)
                parent++;
        const int32_t left = members - 1 - rank;
        children = left ? std::min(parent, floor_log2(uint32_t(left)) + 1) : 0;
    }
};

// From the root (`down`: receive, then send to the farthest child first) or, backwards, to it.
inline bool tree_step(int32_t n, int32_t root, int32_t rank, int32_t step, bool down, bool parts,
                      Step &x) {
    const int32_t v = rank >= root ? rank - root : rank - root + n;
    const Binomial tree(n, v);
    const int32_t steps = tree.children + (v != 0);
    if (step >= steps)
        return false;
    const int32_t turn = down ? step : steps - 1 - step; // as counted from the root downwards
    const bool with_parent = v != 0 && turn == 0;
    const int log_hop = with_parent ? tree.parent : tree.children - 1 - (turn - (v != 0));
    const int32_t other = with_parent ? v - (1 << log_hop) : v + (1 << log_hop);
    const int32_t partner = int32_t((int64_t(other) + root) % n);
    const int32_t size = parts ? subtree_size(log_hop, with_parent ? v : other, n) : 0;
    if (with_parent == down) {
        x.source = partner;
        x.size_in = size;
    } else {
        x.to = partner;
        x.size_out = size;
        x.arrives_in = down ? 0 : log_hop; // the parent hears of its nearest child first
    }
    return true;
}

inline bool shift_step(int32_t n, int32_t rank, int32_t by, int32_t step, Step &x) {
    x.to = int32_t((int64_t(rank) + by) % n);
    x.source = rank >= by ? rank - by : rank - by + n;
    x.arrives_in = step;
    return true;
}

inline bool doubling_step(int32_t n, int32_t rank, int32_t step, Step &x) {
    const int rounds = floor_log2(uint32_t(n));
    const int32_t power = 1 << rounds, extra = n - power;
    if (rank >= power) { // hands its data to a rank of the power of two, and gets the result back
        (step == 0 ? x.to : x.source) = rank - power;
        return step < 2;
    }
    const int32_t folded = rank < extra;
    if (folded && step == 0) {
        x.source = rank + power;
        return true;
    }
    const int32_t round = step - folded;
    if (round < rounds) {
        x.to = x.source = rank ^ (1 << round);
        x.arrives_in = round + (x.to < extra);
        return true;
    }
    x.to = rank + power;
    x.arrives_in = 1;
    return folded && round == rounds;
}

inline bool scan_step(int32_t n, int32_t rank, int32_t step, Step &x) {
    if (step >= ceil_log2(uint32_t(n)))
        return false;
    const int32_t hop = 1 << step;
    x.to = rank < n - hop ? rank + hop : -1;
    x.source = rank >= hop ? rank - hop : -1;
    x.arrives_in = step;
    return x.to >= 0 || x.source >= 0;
}

// Step `step` of member `rank` of `n`; false after its last.
inline bool find_step(Kind kind, int32_t n, int32_t root, int32_t rank, int32_t step, Step &x) {
    x = Step{};
    switch (kind) {
    case INIT:
    case BARRIER:
        return step < ceil_log2(uint32_t(n)) && shift_step(n, rank, 1 << step, step, x);
    case BCAST: return tree_step(n, root, rank, step, true, false, x);
    case SCATTER: return tree_step(n, root, rank, step, true, true, x);
    case REDUCE: return tree_step(n, root, rank, step, false, false, x);
    case GATHER: return tree_step(n, root, rank, step, false, true, x);
    case ALLREDUCE: return n > 1 && doubling_step(n, rank, step, x);
    case ALLTOALL:
    case REDUCE_SCATTER: return step < n - 1 && shift_step(n, rank, step + 1, step, x);
    case ALLGATHER: return step < n - 1 && shift_step(n, rank, 1, step, x);
    case SCAN: return scan_step(n, rank, step, x);
    case KINDS: break;
    }
    return false;
}

} // namespace popmodel
