// Which types of events occur in a column, and where some of them stand.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "scratch.hpp"

#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

// Each type once, ascending.
Numpy<uint32_t> distinct_types(In<uint32_t> type) {
    std::set<uint32_t> found;
    std::array<int64_t, 1024> seen; // most events are of a few types
    seen.fill(-1);
    for (size_t i = 0; i < type.size(); i++) {
        const uint32_t each = type.data()[i];
        int64_t &guess = seen[(each * 2654435761u) >> 22];
        if (guess == int64_t(each))
            continue;
        guess = each;
        found.insert(each);
    }
    return numpy(popmodel::LongVector<uint32_t>(found.begin(), found.end()));
}

// Rows, ascending, whose type is in one of the runs of numbers from low to high; the first row of
// the column is number `first`.
Numpy<int64_t> rows_of_types(In<uint32_t> type, In<uint32_t> low, In<uint32_t> high,
                             int64_t first) {
    check(low.size() == high.size(), DIFFERENT_LENGTHS);
    constexpr size_t BLOCK = 1 << 12;
    std::array<uint8_t, BLOCK> mine;
    std::array<int64_t, BLOCK> some;
    popmodel::LongVector<int64_t> rows;
    for (size_t begin = 0; begin < type.size(); begin += BLOCK) {
        const size_t size = std::min(BLOCK, type.size() - begin);
        const uint32_t *const types = type.data() + begin;
        mine.fill(0);
        for (size_t run = 0; run < low.size(); run++) {
            const uint32_t least = low.data()[run], span = high.data()[run] - least;
            for (size_t i = 0; i < size; i++)
                mine[i] |= types[i] - least <= span; // those below `least` differ by much
        }
        size_t count = 0;
        for (size_t i = 0; i < size; i++) {
            some[count] = first + int64_t(begin + i);
            count += mine[i];
        }
        rows.insert(rows.end(), some.begin(), some.begin() + ptrdiff_t(count));
    }
    return numpy(std::move(rows));
}

} // namespace

void bind_types(nb::module_ &module) {
    module.def("distinct_types", &distinct_types, nb::arg("type"), "Each type once, ascending.");
    module.def("rows_of_types", &rows_of_types, nb::arg("type"), nb::arg("low"), nb::arg("high"),
               nb::arg("first"),
               "Numbers of the rows whose type is in one of the runs from low to high; that of the "
               "column's first row is given.");
}
