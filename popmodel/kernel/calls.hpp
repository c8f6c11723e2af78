// The MPI calls of a run, as Python hands them over: by process, in order of their entry, and what
// each does. Which call does what is decided in popmodel.simulator.mpi_calls.
#pragma once

#include <climits>

#include "numpy.hpp"

namespace popmodel {

// Numbers shared with popmodel.simulator.mpi_calls.Action.
enum class Action : uint8_t {
    LOCAL,
    SEND,
    ISEND,
    RECEIVE,
    IRECEIVE,
    SENDRECEIVE,
    START,
    WAIT,
    WAITALL,
    COLLECTIVE,
    ICOLLECTIVE,
    EXCHANGE,
    IEXCHANGE,
    IGNORED
};

struct Calls {
    In<int64_t> offsets; // of processes
    In<int64_t> entry, exit;
    In<int16_t> code;     // of each call, into the next
    In<uint8_t> action_of;

    size_t processes() const { return offsets.size() - 1; }
    size_t size() const { return entry.size(); }
    int32_t first(size_t process) const { return int32_t(offsets.data()[process]); }
    Action action(int32_t call) const { return Action(action_of.data()[code.data()[call]]); }

    void check_columns() const {
        check(size() < size_t(INT32_MAX), "more calls than 32 bits can number");
        check_offsets(offsets, size());
        check(exit.size() == size() && code.size() == size(), DIFFERENT_LENGTHS);
        check_below(code, int64_t(action_of.size()), "a call without an action");
        check_below(action_of, int64_t(Action::IGNORED) + 1, "an unknown action");
    }
};

} // namespace popmodel
