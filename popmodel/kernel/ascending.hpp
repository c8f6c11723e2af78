// A look into ascending times that goes on from the one before: cheap where those who ask go forward
// in time, right in any order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace popmodel {

class Ascending {
  public:
    Ascending() = default;
    Ascending(const int64_t *times, size_t count) : times_(times), count_(count) {}

    // How many of the times are not after `time`.
    size_t until(int64_t time) {
        size_t low = 0, high = at_;
        if (at_ == 0 || times_[at_ - 1] <= time) {
            for (const size_t near = std::min(at_ + 3, count_); at_ < near; at_++)
                if (times_[at_] > time)
                    return at_;
            size_t step = 1;
            for (low = at_; low + step <= count_ && times_[low + step - 1] <= time; step *= 2)
                low += step;
            high = std::min(low + step - 1, count_);
        }
        at_ = size_t(std::upper_bound(times_ + low, times_ + high, time) - times_);
        return at_;
    }

  private:
    const int64_t *times_ = nullptr;
    size_t count_ = 0;
    size_t at_ = 0; // where the last look ended
};

} // namespace popmodel
