// Looks into the times of intervals, see popmodel.trace.intervals.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "numpy.hpp"

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
    std::vector<int64_t> found(group.size());
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

} // namespace

void bind_intervals(nb::module_ &module) {
    module.def("locate", &locate, nb::arg("offsets"), nb::arg("times"), nb::arg("group"),
               nb::arg("time"),
               "Index of the last time of each group that is not after each time, or the group's "
               "begin - 1.");
}
