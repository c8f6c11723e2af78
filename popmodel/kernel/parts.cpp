// Columns that are partitioned: where times stand in a part, and sums of the parts.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scratch.hpp"

#include "bursts.hpp"
#include "numpy.hpp"
#include "trim.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

// Index of the last of `times` that is <= `time` in the slice of `group`, or the slice's begin - 1.
// Times ascend within a slice.
Numpy<int64_t> locate(In<int64_t> offsets, In<int64_t> times, In<int64_t> group,
                      In<int64_t> time) {
    check_offsets(offsets, times.size());
    if (group.size() != time.size())
        throw std::invalid_argument("columns of different lengths");
    popmodel::LongVector<int64_t> found(group.size());
    for (size_t i = 0; i < group.size(); i++) {
        const int64_t g = group.data()[i];
        if (g < 0 || size_t(g) + 1 >= offsets.size())
            throw std::invalid_argument("group outside the offsets");
        const int64_t *begin = times.data() + offsets.data()[g];
        const int64_t *end = times.data() + offsets.data()[g + 1];
        found[i] = std::upper_bound(begin, end, time.data()[i]) - times.data() - 1;
    }
    return numpy(std::move(found));
}

// Summed length of the intervals of each part.
Numpy<int64_t> lengths(In<int64_t> offsets, In<int64_t> begin, In<int64_t> end) {
    check_offsets(offsets, begin.size());
    check(end.size() == begin.size(), DIFFERENT_LENGTHS);
    popmodel::LongVector<int64_t> found;
    for (size_t p = 0; p + 1 < offsets.size(); p++) {
        uint64_t sum = 0; // wraps around where int64 would overflow
        for (int64_t i = offsets.data()[p]; i < offsets.data()[p + 1]; i++)
            sum += uint64_t(end.data()[i]) - uint64_t(begin.data()[i]);
        found.push_back(int64_t(sum));
    }
    return numpy(std::move(found));
}

// Sums of the parts of a column of bursts, each from its first value to its last.
Numpy<double> sums(In<int64_t> offsets, Bursts::Column column) {
    check_offsets(offsets, column.size());
    const Bursts values(column);
    popmodel::LongVector<double> found;
    for (size_t p = 0; p + 1 < offsets.size(); p++) {
        double sum = 0;
        for (int64_t i = offsets.data()[p]; i < offsets.data()[p + 1]; i++)
            sum += values[i];
        found.push_back(sum);
    }
    return numpy(std::move(found));
}

} // namespace

void bind_parts(nb::module_ &module) {
    module.def("locate", &locate, nb::arg("offsets"), nb::arg("times"), nb::arg("group"),
               nb::arg("time"),
               "Index of the last time of each group that is not after each time, or the group's "
               "begin - 1.");
    module.def("sums", &sums, nb::arg("offsets"), nb::arg("bursts"), "Sum of each part.");
    module.def("lengths", &lengths, nb::arg("offsets"), nb::arg("begin"), nb::arg("end"),
               "Summed length of the intervals of each part.");
    module.def("trim", &trim, "Hand free memory back to the system.");
}
