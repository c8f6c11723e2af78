// What of a run threads spend in which state.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

#include "scratch.hpp"

#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

void check_columns(const In<int64_t> &offsets, const In<int64_t> &begin, const In<int64_t> &end,
                   const In<int32_t> &state) {
    check_offsets(offsets, begin.size());
    check(end.size() == begin.size() && state.size() == begin.size(), DIFFERENT_LENGTHS);
}

// Summed length of the states of each location: of all, and of all but one.
nb::tuple state_times(In<int64_t> offsets, In<int64_t> begin, In<int64_t> end, In<int32_t> state,
                      int32_t without) {
    check_columns(offsets, begin, end, state);
    popmodel::LongVector<int64_t> all, most;
    for (size_t l = 0; l + 1 < offsets.size(); l++) {
        uint64_t sum = 0, left_out = 0; // wrap around where int64 would overflow
        for (int64_t i = offsets.data()[l]; i < offsets.data()[l + 1]; i++) {
            const uint64_t length = uint64_t(end.data()[i]) - uint64_t(begin.data()[i]);
            sum += length;
            left_out += state.data()[i] == without ? length : 0;
        }
        all.push_back(int64_t(sum));
        most.push_back(int64_t(sum - left_out));
    }
    return nb::make_tuple(numpy(std::move(all)), numpy(std::move(most)));
}

// Rows of one state: how many each location has, and their begins and ends.
nb::tuple in_state(In<int64_t> offsets, In<int64_t> begin, In<int64_t> end, In<int32_t> state,
                   int32_t wanted) {
    check_columns(offsets, begin, end, state);
    popmodel::LongVector<int64_t> count, begins, ends;
    for (size_t l = 0; l + 1 < offsets.size(); l++) {
        const size_t before = begins.size();
        for (int64_t i = offsets.data()[l]; i < offsets.data()[l + 1]; i++)
            if (state.data()[i] == wanted) {
                begins.push_back(begin.data()[i]);
                ends.push_back(end.data()[i]);
            }
        count.push_back(int64_t(begins.size() - before));
    }
    return nb::make_tuple(numpy(std::move(count)), numpy(std::move(begins)),
                          numpy(std::move(ends)));
}

} // namespace

void bind_states(nb::module_ &module) {
    module.def("state_times", &state_times, nb::kw_only(), nb::arg("offsets"), nb::arg("begin"),
               nb::arg("end"), nb::arg("state"), nb::arg("without"),
               "Summed length of the states of each location: of all, and of all but one.");
    module.def("in_state", &in_state, nb::kw_only(), nb::arg("offsets"), nb::arg("begin"),
               nb::arg("end"), nb::arg("state"), nb::arg("wanted"),
               "How many rows of one state each location has, and their begins and ends.");
}
