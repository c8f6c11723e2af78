// What processes compute and call in formats without measured times.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "scratch.hpp"

namespace popmodel::untimed {

constexpr double kMost = 9007199254740992.0;  // 2^53: ns and bytes beyond are not exact
constexpr std::int32_t kAnySource = -2;       // partner and tag of receives that take any,
constexpr std::int64_t kAnyTag = -1;          // until `match_receives` names them

// Why a line cannot be used.
struct LineProblem : std::runtime_error {
    using std::runtime_error::runtime_error;
};

constexpr const char *kNames[] = {
    "MPI_Send",      "MPI_Ssend",    "MPI_Bsend",     "MPI_Isend",      "MPI_Issend",
    "MPI_Ibsend",    "MPI_Recv",     "MPI_Irecv",     "MPI_Wait",       "MPI_Waitall",
    "MPI_Finalize",  "test",         "MPI_Barrier",   "MPI_Bcast",      "MPI_Gather",
    "MPI_Gatherv",   "MPI_Scatter",  "MPI_Scatterv",  "MPI_Allgather",  "MPI_Allgatherv",
    "MPI_Alltoall",  "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Reduce",    "MPI_Allreduce",
    "MPI_Reduce_scatter", "MPI_Reduce_scatter_block", "MPI_Scan", "MPI_Exscan",
    "MPI_Ibarrier",  "MPI_Ibcast",   "MPI_Igather",   "MPI_Igatherv",   "MPI_Iscatter",
    "MPI_Iscatterv", "MPI_Iallgather", "MPI_Iallgatherv", "MPI_Ialltoall", "MPI_Ialltoallv",
    "MPI_Ialltoallw", "MPI_Ireduce", "MPI_Iallreduce", "MPI_Ireduce_scatter",
    "MPI_Ireduce_scatter_block", "MPI_Iscan", "MPI_Iexscan"};
enum Name : std::int16_t {
    kSend, kSsend, kBsend, kIsend, kIssend, kIbsend,
    kRecv, kIrecv,
    kWait, kWaitall, kFinalize, kTest,
    kCollective,  // the first of the blocking ones; as many nonblocking ones follow
    kNames_ = sizeof kNames / sizeof *kNames,
    kNonblocking = kCollective + (kNames_ - kCollective) / 2
};
inline bool is_send(std::int16_t name) { return name <= kIbsend; }
inline bool is_receive(std::int16_t name) { return name == kRecv || name == kIrecv; }

struct Call {
    double time;  // ns that its process has computed before it
    std::int64_t tag, size;
    std::int32_t partner, request;  // -1: none; a request from 1
    std::int16_t name;
};

struct CollectiveCall {
    std::int64_t call, sent, received, communicator;
    bool is_root;
    std::vector<std::int64_t> parts;  // bytes for each peer, where they are told
};

class Actions {
  public:
    explicit Actions(std::int64_t rank_ = 0) : rank(rank_) {}

    std::int64_t rank;
    double time = 0.0;
    LongVector<Call> calls;
    LongVector<CollectiveCall> collectives;
    LongVector<std::pair<double, double>> bursts;

    std::int32_t request() { return ++requests_; }
    void compute(double length) {
        const double begin = time;
        time += length;
        if (!(time <= kMost))
            throw LineProblem("process " + std::to_string(rank) +
                              " computes longer than can be represented");
        if (std::nearbyint(time) > std::nearbyint(begin)) bursts.emplace_back(begin, time);
    }
    void message(std::int16_t name, std::int32_t partner, std::int64_t tag, std::int64_t size,
                 std::int32_t request = -1) {
        calls.push_back({time, tag, size, partner, request, name});
    }
    void call(std::int16_t name, std::int32_t request = -1) {
        calls.push_back({time, 0, 0, -1, request, name});
    }
    void collective(std::int16_t name, std::int64_t sent, std::int64_t received, bool is_root,
                    std::int64_t communicator = 0, std::int32_t request = -1,
                    std::vector<std::int64_t> parts = {}) {
        collectives.push_back({static_cast<std::int64_t>(calls.size()), sent, received,
                               communicator, is_root, std::move(parts)});
        call(name, request);
    }

  private:
    std::int32_t requests_ = 0;
};

// Name what receives from any process or with any tag get; returns how many there are. Tests are
// taken out: each takes `sleep` ns, and more after others that found nothing.
std::int64_t match_receives(std::vector<Actions> &processes, double sleep);

}  // namespace popmodel::untimed
