// What the reader keeps: what regions are, open regions, ends of messages; and amounts of collectives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "numpy.hpp"

namespace popmodel::otf2 {

// What a region is to popmodel, as Python decides it.
enum Kind : uint8_t { PLAIN, FUNCTION, MPI, PARALLEL, TASK };
enum Trait : uint8_t {
    COLLECTIVE = 1, // room for its arguments is needed behind its entry
    BY_ENTRY = 2,   // its messages name it by its entry alone
    TEST = 4,       // it may find nothing
    USER = 8,       // its occurrences are events
    EXPLICIT = 16,  // it is there to tell a state
};
constexpr int32_t INHERITED = -1;

struct Region {
    Kind kind = PLAIN;
    uint8_t traits = 0;
    int32_t state = INHERITED; // of a thread inside it
    uint32_t type = 0;         // of its event; 0 for none
    int64_t value = 0;
    int64_t missed = 0; // value of a test that found nothing

    // A function that shows nowhere but in the times of functions.
    bool is_quiet() const { return kind == FUNCTION && state == INHERITED && !(traits & USER); }
};

// Numbers of definitions as indices; a number may be any.
class Index {
  public:
    void assign(const In<uint32_t> &numbers) {
        for (size_t i = 0; i < numbers.size(); i++) {
            const uint32_t number = numbers.data()[i];
            if (number >= DENSE) {
                others_[number] = int32_t(i);
                continue;
            }
            if (number >= dense_.size())
                dense_.resize(number + 1, -1);
            dense_[number] = int32_t(i);
        }
    }
    int32_t operator()(uint32_t number) const {
        if (number < dense_.size())
            return dense_[number];
        const auto found = others_.find(number);
        return found == others_.end() ? -1 : found->second;
    }

  private:
    static constexpr uint32_t DENSE = 1 << 20;
    std::vector<int32_t> dense_;
    std::unordered_map<uint32_t, int32_t> others_;
};

// Numbers of popmodel's events, as `popmodel.traces.paraver.numbers` has them.
struct EventTypes {
    uint32_t sent, received, communicator, is_root, caller, parallel, outlined, user;
    uint32_t file_call, file_bytes, mpi_file_bytes;
};

enum States : int32_t {
    NO_STATE = -2,
    RUNNING = 1,
    NOT_CREATED = 2,
    SCHEDULING = 7,
    FLUSHING = 12,
    OFF = 14
};

// A hardware counter of a metric.
struct Counter {
    uint32_t type; // of its event; 0: none
    bool relative; // counts since the reading before
    double scale;
};

struct Frame {
    // Written where it stays, and read field by field: a copy would wait for what was just written.
    Frame(int32_t index, int32_t shows, int32_t held, int32_t called)
        : region(index), state(shows), holds(held), caller(called) {}
    int32_t region;
    int32_t state;
    int32_t holds;  // region whose event is open (a barrier, a lock), or -1
    int32_t caller; // innermost function, or -1
    bool opened = false; // a parallel region without records of its team
};

using Stack = std::vector<Frame>;

// An end of a message: a send or a receive.
struct Message {
    int64_t logical, physical, order, size;
    int32_t communicator, peer, tag, process, location;
};

struct Post {
    int64_t logical, order;
    bool pending; // its call has not ended
};

struct Probed {
    int32_t communicator, peer;
    int64_t tag;
};

// What is worth a warning, in the order of the reader's texts.
enum Tally { UNBALANCED, UNDEFINED, UNORDERED, FLUSHES, UNPOSTED, NOT_HERE, SAMPLES, TALLIES };

inline int64_t per(int64_t bytes, int64_t processes) { return bytes / std::max<int64_t>(processes, 1); }

// What a process sends and receives in a collective as popmodel counts it (each contribution once),
// from Score-P's sums over all that are reached, its own process included.
inline std::pair<int64_t, int64_t> contribution(int op, int64_t size, int64_t rank, bool is_root,
                                         int64_t sent, int64_t received) {
    constexpr int BCAST = 1, ALLGATHER = 6, ALLGATHERV = 7, ALLREDUCE = 11, REDUCE = 12,
                  REDUCE_SCATTER = 13, SCAN = 14, EXSCAN = 15, REDUCE_SCATTER_BLOCK = 16;
    switch (op) {
    case BCAST:
        return is_root ? std::pair(per(sent, size), int64_t(0)) : std::pair(int64_t(0), received);
    case REDUCE: // in place, the root sends nothing to itself
        return is_root ? std::pair(int64_t(0), sent ? sent : per(received, size - 1))
                       : std::pair(sent, int64_t(0));
    case ALLREDUCE:
        return {per(sent, size), per(received, size)};
    case ALLGATHER:
    case ALLGATHERV:
        return {per(sent, size), received};
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK:
        return {sent, per(received, size)};
    case SCAN:
    case EXSCAN: {
        const int64_t after = size - rank - (op == EXSCAN), before = rank + (op == SCAN);
        const int64_t block = after > 0 ? per(sent, after) : per(received, before);
        return {block, block};
    }
    default:
        return {sent, received};
    }
}

struct Communicator {
    int64_t number;
    bool own;                       // each process has one of its own
    std::vector<int64_t> members;   // processes
    std::vector<int64_t> far, near; // what ranks mean; to those not in `near`, its processes
};

// The process that a rank of a communicator is to a process, or -1.
inline int64_t partner(const Communicator &of, int64_t process, int32_t peer) {
    if (of.own)
        return peer == 0 ? process : -1;
    const bool is_far =
        !of.near.empty() && std::find(of.near.begin(), of.near.end(), process) == of.near.end();
    const std::vector<int64_t> &peers = is_far ? of.near : of.far;
    return peer >= 0 && size_t(peer) < peers.size() ? peers[size_t(peer)] : -1;
}

} // namespace popmodel::otf2
