// Two sequences side by side: which of their items are the same, in the order of both.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

#include "scratch.hpp"

#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

using Labels = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// What speaks for two items being one: the worth of the first column, from the left, in which their
// labels are the same; 0 where there is none. Negative labels are the same as no other.
struct Likeness {
    const int64_t *one, *other;
    const double *worth;
    size_t columns;

    double operator()(size_t i, size_t j) const {
        for (size_t c = 0; c < columns; c++)
            if (one[i * columns + c] == other[j * columns + c] && one[i * columns + c] >= 0)
                return worth[c];
        return 0.0;
    }
};

enum Step : uint8_t { BOTH, ONE, OTHER };

// Pairs of items that are one (Needleman and Wunsch 1970, gaps cost nothing), of all those that are
// worth most the ones that begin earliest in the first sequence.
nb::tuple align(Labels one, Labels other, In<double> worth) {
    const size_t rows = one.shape(0), columns = other.shape(0);
    check(one.shape(1) == other.shape(1) && one.shape(1) == worth.size(), DIFFERENT_LENGTHS);
    popmodel::LongVector<int64_t> first, second;
    {
        nb::gil_scoped_release released;
        const Likeness likeness{one.data(), other.data(), worth.data(), worth.size()};
        popmodel::LongVector<uint8_t> step(rows * columns);
        popmodel::LongVector<double> below(columns + 1, 0.0), best(columns + 1, 0.0);
        for (size_t i = rows; i-- > 0;) {
            best[columns] = 0.0;
            for (size_t j = columns; j-- > 0;) {
                const double same = likeness(i, j);
                const double both = same > 0 ? below[j + 1] + same : -1.0;
                Step taken = below[j] >= best[j + 1] ? ONE : OTHER;
                best[j] = taken == ONE ? below[j] : best[j + 1];
                if (both >= best[j]) {
                    taken = BOTH;
                    best[j] = both;
                }
                step[i * columns + j] = taken;
            }
            std::swap(best, below);
        }
        for (size_t i = 0, j = 0; i < rows && j < columns;) {
            const uint8_t taken = step[i * columns + j];
            if (taken == BOTH) {
                first.push_back(int64_t(i));
                second.push_back(int64_t(j));
            }
            i += taken != OTHER;
            j += taken != ONE;
        }
    }
    return nb::make_tuple(numpy(std::move(first)), numpy(std::move(second)));
}

} // namespace

void bind_align(nb::module_ &module) {
    module.def("align", &align, nb::arg("one"), nb::arg("other"), nb::arg("worth"),
               "Items of two sequences that are the same, in the order of both.");
}
