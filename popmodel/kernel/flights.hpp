// The messages of a collective that are under way: a hash table that holds as many as that, not as
// many as the collective has. Linear probing; what is taken out closes its gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scratch.hpp"

namespace popmodel {

// By the receiver's rank and the step in which it receives. Value must have a default.
template <typename Value> class Flights {
  public:
    // The message, made where there is none. Valid until the next call.
    Value &at(int32_t receiver, int32_t step) {
        if (2 * (held_ + 1) > slots_.size())
            grow();
        Slot &slot = slots_[find(key(receiver, step))];
        if (slot.key == EMPTY) {
            slot.key = key(receiver, step);
            slot.value = Value{};
            held_++;
        }
        return slot.value;
    }

    // A message that is there.
    void erase(int32_t receiver, int32_t step) {
        size_t gap = find(key(receiver, step));
        // Whoever stands behind the gap only because the slot was taken moves into it.
        const size_t mask = slots_.size() - 1;
        for (size_t i = (gap + 1) & mask; slots_[i].key != EMPTY; i = (i + 1) & mask)
            if (((i - home(slots_[i].key)) & mask) >= ((i - gap) & mask)) {
                slots_[gap] = slots_[i];
                gap = i;
            }
        slots_[gap].key = EMPTY;
        held_--;
    }

    bool empty() const { return held_ == 0; }

  private:
    static constexpr uint64_t EMPTY = UINT64_MAX;

    struct Slot {
        uint64_t key = EMPTY;
        Value value;
    };

    static uint64_t key(int32_t receiver, int32_t step) {
        return uint64_t(uint32_t(receiver)) << 32 | uint32_t(step);
    }

    size_t home(uint64_t key) const {
        return size_t(key * 0x9E3779B97F4A7C15u >> 32) & (slots_.size() - 1);
    }

    size_t find(uint64_t key) const {
        size_t i = home(key);
        while (slots_[i].key != EMPTY && slots_[i].key != key)
            i = (i + 1) & (slots_.size() - 1);
        return i;
    }

    void grow() {
        popmodel::LongVector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
        old.swap(slots_);
        for (Slot &slot : old)
            if (slot.key != EMPTY)
                slots_[find(slot.key)] = slot;
    }

    popmodel::LongVector<Slot> slots_;
    size_t held_ = 0;
};

} // namespace popmodel
