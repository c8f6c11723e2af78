// Collectives as point-to-point messages, one step of one member at a time: nothing is laid out in
// advance, since the messages of an all-to-all grow with the square of its members.
//
// An algorithm is a row of patterns, one after the other (a reduction to a root, then a broadcast).
// popmodel.simulator.algorithms composes them; tests/oracle/algorithms.py lays the same messages out
// in plain Python. Ranks are relative to the root here, which is 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace popmodel {

// Numbers shared with popmodel.simulator.patterns.Pattern.
enum Pattern : uint8_t {
    DISSEMINATION,  // to 1, 2, 4 ... ranks on
    TREE_DOWN,      // a binomial tree from the root
    TREE_UP,        // and to it
    PARTS_DOWN,     // the same with the parts of a subtree
    PARTS_UP,
    POWER_PARTS_UP, // among the largest power of two of the members
    LINE_DOWN,      // the root serves one after the other
    LINE_UP,
    POSTED_UP,      // the root posts all receives, then waits for them
    FOLD_IN,        // members beyond the largest power of two hand over what they have
    FOLD_OUT,       // and get something back
    DOUBLING,       // exchanges over distances 1, 2, 4 ... among the power of two
    DOUBLING_PARTS, // each twice as large as the one before
    HALVING,        // over the longest distance first, each half as large
    RING,           // to the next, all around
    PAIRWISE,       // with every other member in turn
    SCAN,           // to 1, 2, 4 ... ranks on, where there is such a rank
    CHAIN,          // along all members in segments
    PATTERNS
};

struct Piece {
    Pattern pattern;
    int32_t segments; // of a chain
    int64_t charge;   // row of the charges of its first message size
};

// What a member does at the same time: a message out, a message in, or one of them.
struct Step {
    int32_t to = -1, source = -1; // ranks in the communicator, -1 for none
    int32_t arrives_in = 0;       // the step of `to` in which it receives the message
    int64_t out = 0, in = 0;      // rows of the charges of the messages
    int32_t posts = -1;           // the later step whose receive is posted now, and nothing else
    bool posted = false;          // whether the receive was posted in an earlier step
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

// How many message sizes a pattern has.
inline int32_t sizes(Pattern pattern, int32_t n) {
    switch (pattern) {
    case DISSEMINATION: return ceil_log2(uint32_t(n));
    case PARTS_DOWN:
    case PARTS_UP: return 2 * ceil_log2(uint32_t(n));
    case POWER_PARTS_UP: return 2 * floor_log2(uint32_t(n));
    case DOUBLING_PARTS:
    case HALVING: return floor_log2(uint32_t(n));
    default: return 1;
    }
}

// A binomial tree. A member's parent is one hop away that is the lowest bit of its rank; its
// children are the shorter hops that stay inside.
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

    int32_t steps(int32_t rank) const { return children + (rank != 0); }
};

// From the root (`down`: receive, then send to the farthest child first) or, backwards, to it.
inline void tree_step(int32_t n, int32_t v, int32_t step, bool down, bool parts, Step &x) {
    const Binomial tree(n, v);
    const int32_t turn = down ? step : tree.steps(v) - 1 - step; // as counted from the root
    const bool with_parent = v != 0 && turn == 0;
    const int log_hop = with_parent ? tree.parent : tree.children - 1 - (turn - (v != 0));
    const int32_t other = with_parent ? v - (1 << log_hop) : v + (1 << log_hop);
    const int32_t size = parts ? subtree_size(log_hop, with_parent ? v : other, n) : 0;
    if (with_parent == down) {
        x.source = other;
        x.in = size;
    } else {
        x.to = other;
        x.out = size;
        x.arrives_in = down ? 0 : log_hop; // the parent hears of its nearest child first
    }
}

inline void shift_step(int32_t n, int32_t v, int32_t by, int32_t step, Step &x) {
    x.to = int32_t((int64_t(v) + by) % n);
    x.source = v >= by ? v - by : v - by + n;
    x.arrives_in = step;
}

inline void exchange_step(int32_t partner, int32_t step, Step &x) {
    x.to = x.source = partner;
    x.arrives_in = step;
}

// How many steps member v of n has in a pattern.
inline int32_t steps_of(const Piece &part, int32_t n, int32_t v) {
    const int rounds = floor_log2(uint32_t(n));
    const int32_t power = 1 << rounds;
    switch (part.pattern) {
    case DISSEMINATION: return ceil_log2(uint32_t(n));
    case TREE_DOWN:
    case TREE_UP:
    case PARTS_DOWN:
    case PARTS_UP: return Binomial(n, v).steps(v);
    case POWER_PARTS_UP: return v < power ? Binomial(power, v).steps(v) : 0;
    case LINE_DOWN:
    case LINE_UP: return v ? 1 : n - 1;
    case POSTED_UP: return v ? 1 : 2 * (n - 1);
    case FOLD_IN:
    case FOLD_OUT: return v >= power || v < n - power;
    case DOUBLING:
    case DOUBLING_PARTS:
    case HALVING: return v < power ? rounds : 0;
    case RING:
    case PAIRWISE: return n - 1;
    case SCAN: {
        const int32_t farthest = std::max(v, n - 1 - v);
        return farthest ? floor_log2(uint32_t(farthest)) + 1 : 0;
    }
    case CHAIN: return n < 2 ? 0 : part.segments + (v != 0 && v != n - 1);
    case PATTERNS: break;
    }
    return 0;
}

// Step `step` of member v of n in a pattern: partners are relative ranks, charges sizes from 0.
inline void step_of(const Piece &part, int32_t n, int32_t v, int32_t step, Step &x) {
    const int32_t power = 1 << floor_log2(uint32_t(n));
    switch (part.pattern) {
    case DISSEMINATION:
        shift_step(n, v, 1 << step, step, x);
        x.out = x.in = step;
        break;
    case TREE_DOWN: tree_step(n, v, step, true, false, x); break;
    case TREE_UP: tree_step(n, v, step, false, false, x); break;
    case PARTS_DOWN: tree_step(n, v, step, true, true, x); break;
    case PARTS_UP: tree_step(n, v, step, false, true, x); break;
    case POWER_PARTS_UP: tree_step(power, v, step, false, true, x); break;
    case LINE_DOWN: (v ? x.source : x.to) = v ? 0 : step + 1; break;
    case LINE_UP:
        (v ? x.to : x.source) = v ? 0 : step + 1;
        x.arrives_in = v - 1;
        break;
    case POSTED_UP:
        if (v) {
            x.to = 0;
            x.arrives_in = n - 1 + v - 1;
        } else if (step < n - 1) {
            x.posts = n - 1 + step;
        } else {
            x.source = step - (n - 1) + 1;
            x.posted = true;
        }
        break;
    case FOLD_IN: (v >= power ? x.to : x.source) = v >= power ? v - power : v + power; break;
    case FOLD_OUT: (v >= power ? x.source : x.to) = v >= power ? v - power : v + power; break;
    case DOUBLING: exchange_step(v ^ 1 << step, step, x); break;
    case DOUBLING_PARTS:
        exchange_step(v ^ 1 << step, step, x);
        x.out = x.in = step;
        break;
    case HALVING:
        exchange_step(v ^ power >> (step + 1), step, x);
        x.out = x.in = step;
        break;
    case RING: shift_step(n, v, 1, step, x); break;
    case PAIRWISE: shift_step(n, v, step + 1, step, x); break;
    case SCAN: {
        const int32_t hop = 1 << step;
        x.to = v < n - hop ? v + hop : -1;
        x.source = v >= hop ? v - hop : -1;
        x.arrives_in = step;
        break;
    }
    case CHAIN: // a member sends each segment while it receives the next one
        x.source = v > 0 && step < part.segments ? v - 1 : -1;
        x.arrives_in = v > 0 ? step - 1 : step;
        x.to = v < n - 1 && x.arrives_in >= 0 ? v + 1 : -1;
        break;
    case PATTERNS: break;
    }
}

// Step `step` of member `rank` of `n` in an algorithm; false after its last.
inline bool find_step(const Piece *parts, const Piece *end, int32_t n, int32_t root, int32_t rank,
                      int32_t step, Step &x) {
    const int32_t v = rank >= root ? rank - root : rank - root + n;
    int32_t before = 0;
    for (const Piece *part = parts; part != end; part++) {
        const int32_t steps = steps_of(*part, n, v);
        if (step - before >= steps) {
            before += steps;
            continue;
        }
        x = Step{};
        step_of(*part, n, v, step - before, x);
        x.out += part->charge;
        x.in += part->charge;
        if (x.posts >= 0)
            x.posts += before;
        if (x.to >= 0) {
            for (const Piece *earlier = parts; earlier != part; earlier++)
                x.arrives_in += steps_of(*earlier, n, x.to);
            x.to = int32_t((int64_t(x.to) + root) % n);
        }
        if (x.source >= 0)
            x.source = int32_t((int64_t(x.source) + root) % n);
        return true;
    }
    return false;
}

} // namespace popmodel
