// Memory for long columns: what exceeds a budget lies in files of a scratch folder.
//
// The files have no name, so nothing is left of them however the process ends. Their pages count
// as the system's file cache: where others need memory they are written out, and read again when
// they are looked at. Nothing here knows Python.
#pragma once

#include <cstddef>
#include <new>
#include <string>
#include <vector>

namespace popmodel::scratch {

// Blocks from this size on are counted, and may lie in files.
constexpr std::size_t kLarge = std::size_t{1} << 22;

// Let large blocks that exceed `budget` bytes together lie in files of a folder; an empty name:
// nowhere but in memory.
void use(const std::string &folder, std::size_t budget);
// Bytes that could not be had of the folder the last time, and why (errno); 0: none.
std::size_t lacking(int &reason);

void *take(std::size_t bytes);  // nullptr where there is no memory
void *take_zeros(std::size_t bytes);
void *resize(void *block, std::size_t bytes);
void give(void *block);

template <typename T>
struct Allocator {
    using value_type = T;
    Allocator() = default;
    template <typename Other>
    Allocator(const Allocator<Other> &) {}
    T *allocate(std::size_t count) {
        void *const block = count > ~std::size_t{0} / sizeof(T) ? nullptr : take(count * sizeof(T));
        if (!block) throw std::bad_alloc();
        return static_cast<T *>(block);
    }
    void deallocate(T *block, std::size_t) { give(block); }
    template <typename Other>
    bool operator==(const Allocator<Other> &) const { return true; }
    template <typename Other>
    bool operator!=(const Allocator<Other> &) const { return false; }
};

}  // namespace popmodel::scratch

namespace popmodel {

// Rows of a column, of which there may be as many as a trace has records.
template <typename T>
using LongVector = std::vector<T, scratch::Allocator<T>>;

}  // namespace popmodel
