// What threads tell at instants, such as readings of counters, and sums of it inside intervals.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

#include "ascending.hpp"
#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

// Times, and begins of intervals, ascend inside a location. Of several readings at one time the first
// counts, and it belongs to the interval with begin < time <= end.
// Returns the sum of each location, how many values are negative, and the sum of all as a float.
nb::tuple sum_inside(In<int64_t> offsets, In<int64_t> time, In<int64_t> value,
                     In<int64_t> within_offsets, In<int64_t> begin, In<int64_t> end) {
    check_offsets(offsets, time.size());
    check_offsets(within_offsets, begin.size());
    check(value.size() == time.size() && end.size() == begin.size() &&
              within_offsets.size() == offsets.size(),
          DIFFERENT_LENGTHS);
    std::vector<int64_t> sums;
    int64_t negative = 0;
    double total = 0;
    for (size_t l = 0; l + 1 < offsets.size(); l++) {
        const int64_t first = offsets.data()[l], from = within_offsets.data()[l];
        Ascending begins(begin.data() + from, size_t(within_offsets.data()[l + 1] - from));
        uint64_t sum = 0; // wraps around where int64 would overflow
        for (int64_t i = first; i < offsets.data()[l + 1]; i++) {
            const int64_t at = time.data()[i];
            if (i > first && time.data()[i - 1] == at)
                continue;
            const size_t index = begins.until(at - 1);
            if (index == 0 || at > end.data()[from + int64_t(index) - 1])
                continue;
            sum += uint64_t(value.data()[i]);
            total += double(value.data()[i]);
            negative += value.data()[i] < 0;
        }
        sums.push_back(int64_t(sum));
    }
    return nb::make_tuple(numpy(std::move(sums)), negative, total);
}

// Times and values of the events whose type is in one of the runs of numbers from low to high, and
// how many of them each location has.
nb::tuple readings(In<int64_t> offsets, In<int64_t> time, In<uint32_t> type, In<int64_t> value,
                   In<uint32_t> low, In<uint32_t> high) {
    check_offsets(offsets, time.size());
    check(type.size() == time.size() && value.size() == time.size() && low.size() == high.size(),
          DIFFERENT_LENGTHS);
    const size_t runs = low.size();
    const uint32_t *const least = low.data(), *const most = high.data(), *const types = type.data();
    std::vector<int64_t> count, times, values;
    for (size_t l = 0; l + 1 < offsets.size(); l++) {
        const size_t before = times.size();
        for (int64_t i = offsets.data()[l]; i < offsets.data()[l + 1]; i++)
            for (size_t run = 0; run < runs; run++)
                if (types[i] - least[run] <= most[run] - least[run]) {
                    times.push_back(time.data()[i]);
                    values.push_back(value.data()[i]);
                    break;
                }
        count.push_back(int64_t(times.size() - before));
    }
    return nb::make_tuple(numpy(std::move(count)), numpy(std::move(times)),
                          numpy(std::move(values)));
}

} // namespace

void bind_readings(nb::module_ &module) {
    module.def("readings", &readings, nb::kw_only(), nb::arg("offsets"), nb::arg("time"),
               nb::arg("type"), nb::arg("value"), nb::arg("low"), nb::arg("high"),
               "How many events each location has whose type is in one of the runs from low to high, "
               "and their times and values.");
    module.def("sum_inside", &sum_inside, nb::kw_only(), nb::arg("offsets"), nb::arg("time"),
               nb::arg("value"), nb::arg("within_offsets"), nb::arg("begin"), nb::arg("end"),
               "Sum of what is told inside intervals by location, how many values are negative, and "
               "the sum of all.");
}
