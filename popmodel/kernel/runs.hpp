// Maximal repetitions ("runs") of a sequence in n log n: by the runs theorem (Bannai, I, Inenaga,
// Nakashima, Takeda, Tsuruta: The "Runs" Theorem, SIAM J. Comput. 46, 2017) each has a longest
// Lyndon word of the sequence as its root, in one of the two orders of the alphabet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "scratch.hpp"

namespace popmodel {

// Hashes of all stretches of a sequence: polynomials modulo 2^61 - 1.
class Stretches {
  public:
    explicit Stretches(const popmodel::LongVector<int32_t> &sequence)
        : sequence_(sequence), hash_(sequence.size() + 1), power_(sequence.size() + 1) {
        power_[0] = 1;
        for (size_t i = 0; i < sequence.size(); i++) {
            hash_[i + 1] = reduced(product(hash_[i], BASE) + uint64_t(sequence[i]) + 1);
            power_[i + 1] = product(power_[i], BASE);
        }
    }

    size_t size() const { return sequence_.size(); }

    uint64_t hash(size_t begin, size_t end) const {
        return reduced(hash_[end] + PRIME - product(hash_[begin], power_[end - begin]));
    }

    // How far the sequence is the same from two places on, the second behind the first.
    size_t forth(size_t one, size_t other) const {
        const size_t most = size() - other;
        size_t length = 0;
        while (length < most && length < DIRECT &&
               sequence_[one + length] == sequence_[other + length])
            length++;
        if (length < DIRECT || length == most)
            return length;
        return longest(most, [&](size_t l) {
            return hash(one, one + l) == hash(other, other + l);
        });
    }

    // How far it is the same before two places, the second behind the first.
    size_t back(size_t one, size_t other) const {
        size_t length = 0;
        while (length < one && length < DIRECT &&
               sequence_[one - length - 1] == sequence_[other - length - 1])
            length++;
        if (length < DIRECT || length == one)
            return length;
        return longest(one, [&](size_t l) {
            return hash(one - l, one) == hash(other - l, other);
        });
    }

  private:
    static constexpr uint64_t PRIME = (uint64_t(1) << 61) - 1;
    static constexpr uint64_t BASE = 0x1b3f6a9c5d7e8241;
    static constexpr size_t DIRECT = 16;

    static uint64_t reduced(uint64_t value) {
        value = (value & PRIME) + (value >> 61);
        return value >= PRIME ? value - PRIME : value;
    }

    static uint64_t product(uint64_t a, uint64_t b) {
        const unsigned __int128 both = static_cast<unsigned __int128>(a) * b;
        return reduced((uint64_t(both) & PRIME) + uint64_t(both >> 61));
    }

    template <typename Holds>
    static size_t longest(size_t most, Holds holds) {
        size_t known = DIRECT, step = DIRECT;
        while (known + step <= most && holds(known + step)) {
            known += step;
            step *= 2;
        }
        size_t beyond = std::min(known + step, most + 1);
        while (beyond - known > 1) {
            const size_t middle = known + (beyond - known) / 2;
            (holds(middle) ? known : beyond) = middle;
        }
        return known;
    }

    const popmodel::LongVector<int32_t> &sequence_;
    popmodel::LongVector<uint64_t> hash_, power_;
};

struct Run {
    int32_t begin, end, period;
};

// All maximal repetitions with their shortest periods, by their begins.
inline popmodel::LongVector<Run> runs_of(const popmodel::LongVector<int32_t> &sequence, const Stretches &stretches) {
    const size_t size = sequence.size();
    popmodel::LongVector<Run> found;
    popmodel::LongVector<int32_t> lyndon(size);
    for (const bool inverse : {false, true}) {
        for (size_t i = size; i-- > 0;) {
            size_t j = i + 1;
            while (j < size) {
                const size_t same = stretches.forth(i, j);
                // What ends is smaller than what goes on, in the inverse order larger.
                const bool smaller =
                    j + same == size ? false : sequence[i + same] < sequence[j + same];
                if (smaller == inverse)
                    break;
                j = size_t(lyndon[j]);
            }
            lyndon[i] = int32_t(j);
            if (j == size)
                continue;
            const size_t period = j - i, before = stretches.back(i, j);
            const size_t after = stretches.forth(i, j);
            if (before + after >= period)
                found.push_back({int32_t(i - before), int32_t(j + after), int32_t(period)});
        }
    }
    const auto key = [](const Run &run) { return std::tie(run.begin, run.end, run.period); };
    std::sort(found.begin(), found.end(),
              [&](const Run &a, const Run &b) { return key(a) < key(b); });
    found.erase(std::unique(found.begin(), found.end(),
                            [](const Run &a, const Run &b) {
                                return a.begin == b.begin && a.end == b.end;
                            }),
                found.end());
    return found;
}

} // namespace popmodel
