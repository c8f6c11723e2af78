// Eight bytes at a time: digits into numbers, and numbers into as few bytes as they need.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__GNUC__)
#define POPMODEL_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define POPMODEL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define POPMODEL_COLD __attribute__((noinline, cold))
#else
#define POPMODEL_LIKELY(condition) (condition)
#define POPMODEL_UNLIKELY(condition) (condition)
#define POPMODEL_COLD
#endif

namespace popmodel::scan {

inline std::uint64_t load(const void *from) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

inline void store(std::uint8_t *to, std::uint64_t word) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    std::memcpy(to, &word, 8);
}

constexpr std::uint64_t kPower[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// Eight characters, the first in the lowest byte, as digits 0-9; all other characters are larger.
inline std::uint64_t digits(std::uint64_t word) { return word ^ 0x3030303030303030u; }

// How many digits come first, 0 to 8. (A carry out of a byte that is no digit only disturbs the
// bytes after it.)
inline unsigned leading_digits(std::uint64_t word) {
    const std::uint64_t others =
        ((word + 0x7676767676767676u) | word) & 0x8080808080808080u;
    return others ? static_cast<unsigned>(__builtin_ctzll(others)) >> 3 : 8;
}

// The value of the first `count` digits, 1 to 8: neighbours are joined in three steps.
inline std::uint64_t value_of(std::uint64_t word, unsigned count) {
    word <<= 64 - 8 * count;
    word = ((word * 2561) >> 8) & 0x00FF00FF00FF00FFu;
    word = ((word * 6553601) >> 16) & 0x0000FFFF0000FFFFu;
    return (word * 42949672960001u) >> 32;
}

// Read a number of 1 to 16 digits; false, with `at` unchanged, where there is none or a longer one.
inline bool plain_number(const char *&at, std::uint64_t &value) {
    const std::uint64_t word = digits(load(at));
    const unsigned count = leading_digits(word);
    if (POPMODEL_LIKELY(count - 1 < 7)) {
        value = value_of(word, count);
        at += count;
        return true;
    }
    if (POPMODEL_UNLIKELY(count == 0)) return false;
    const std::uint64_t next = digits(load(at + 8));
    const unsigned further = leading_digits(next);
    value = value_of(word, 8);
    if (further == 0) {
        at += 8;
        return true;
    }
    if (POPMODEL_UNLIKELY(further == 8 && static_cast<unsigned char>(at[16] - '0') < 10)) return false;
    value = value * kPower[further] + value_of(next, further);
    at += 8 + further;
    return true;
}

inline unsigned width(std::uint64_t value) {  // bytes without the leading zero ones, value < 2^62
    return (70u - static_cast<unsigned>(__builtin_clzll(2 * value + 1))) >> 3;
}
inline unsigned full_width(std::uint64_t value) {
    return value ? (71u - static_cast<unsigned>(__builtin_clzll(value))) >> 3 : 0;
}
// So many bytes of a word, from the lowest.
constexpr std::uint64_t kMask[] = {0,
                                   0xFF,
                                   0xFFFF,
                                   0xFFFFFF,
                                   0xFFFFFFFF,
                                   0xFFFFFFFFFF,
                                   0xFFFFFFFFFFFF,
                                   0xFFFFFFFFFFFFFF,
                                   ~std::uint64_t{0}};

inline std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t unzigzag(std::uint64_t value) {
    return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

inline void put(std::uint8_t *&at, std::uint64_t value, unsigned bytes) {
    store(at, value);
    at += bytes;
}
inline std::uint64_t get(const std::uint8_t *&at, unsigned bytes) {
    const std::uint64_t value = load(at) & kMask[bytes];
    at += bytes;
    return value;
}

}  // namespace popmodel::scan
