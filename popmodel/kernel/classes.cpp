// Numbers rows of two columns by their distinct pairs, in the order in which these come.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

#include "scratch.hpp"

#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

// Pairs and their numbers: a hash table with linear probing, at most half full.
class Pairs {
  public:
    int32_t number(int64_t a, int64_t b) {
        if (2 * (first_.size() + 1) > slots_.size())
            grow();
        int32_t &slot = slots_[find(a, b)];
        if (slot == EMPTY) {
            slot = int32_t(first_.size());
            first_.push_back(a);
            second_.push_back(b);
        }
        return slot;
    }

    size_t size() const { return first_.size(); }

  private:
    static constexpr int32_t EMPTY = -1;

    size_t find(int64_t a, int64_t b) const {
        const size_t mask = slots_.size() - 1;
        uint64_t key = (uint64_t(a) * 0x9E3779B97F4A7C15u) ^ (uint64_t(b) * 0xC2B2AE3D27D4EB4Fu);
        size_t i = (key ^ (key >> 32)) & mask;
        while (slots_[i] != EMPTY && (first_[slots_[i]] != a || second_[slots_[i]] != b))
            i = (i + 1) & mask;
        return i;
    }

    void grow() {
        slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), EMPTY);
        for (size_t k = 0; k < first_.size(); k++)
            slots_[find(first_[k], second_[k])] = int32_t(k);
    }

    popmodel::LongVector<int32_t> slots_;
    popmodel::LongVector<int64_t> first_, second_;
};

// The class of each message, and the first message of each class. Alike are messages of a size and
// mode that go as far: to their own process, inside a node, to another one.
nb::tuple message_classes(In<int32_t> sender, In<int32_t> receiver, In<int64_t> size,
                          In<int8_t> mode, In<int32_t> nodes) {
    const size_t messages = size.size();
    check(sender.size() == messages && receiver.size() == messages && mode.size() == messages,
          DIFFERENT_LENGTHS);
    check_below(sender, int64_t(nodes.size()), "a process that is not there");
    check_below(receiver, int64_t(nodes.size()), "a process that is not there");
    popmodel::LongVector<int32_t> of(messages);
    popmodel::LongVector<int64_t> first;
    {
        nb::gil_scoped_release released;
        Pairs pairs;
        for (size_t m = 0; m < messages; m++) {
            const int32_t from = sender.data()[m], to = receiver.data()[m];
            const int distance = from == to ? 0 : nodes.data()[from] == nodes.data()[to] ? 1 : 2;
            of[m] = pairs.number(size.data()[m], 4 * int64_t(mode.data()[m]) + distance);
            if (pairs.size() > first.size())
                first.push_back(int64_t(m));
        }
    }
    return nb::make_tuple(numpy(std::move(of)), numpy(std::move(first)));
}

} // namespace

void bind_classes(nb::module_ &module) {
    module.def("message_classes", &message_classes, nb::arg("sender"), nb::arg("receiver"),
               nb::arg("size"), nb::arg("mode"), nb::arg("nodes"),
               "The class of each message by size, mode and distance, and the first message of "
               "each class.");
}
