// Columns from NumPy and to it. A vector handed over stays where it is and goes with the array.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace popmodel {

template <typename T>
using In = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

template <typename T>
using Numpy = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;

template <typename T, typename Allocator>
Numpy<T> numpy(std::vector<T, Allocator> &&values) {
    using Column = std::vector<T, Allocator>;
    auto *kept = new Column(std::move(values));
    nanobind::capsule owner(kept, [](void *data) noexcept { delete static_cast<Column *>(data); });
    return Numpy<T>(kept->data(), {kept->size()}, owner);
}

// The bytes of any Python buffer, held while they are used.
class Bytes {
  public:
    Bytes(nanobind::handle object, bool writable) {
        if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE))
            throw nanobind::python_error();
    }
    Bytes(const Bytes &) = delete;
    Bytes &operator=(const Bytes &) = delete;
    ~Bytes() { PyBuffer_Release(&view_); }
    void *data() const { return view_.buf; }
    std::size_t size() const { return static_cast<std::size_t>(view_.len); }

  private:
    Py_buffer view_;
};

inline void check(bool holds, const char *what) {
    if (!holds)
        throw std::invalid_argument(what);
}

constexpr const char *DIFFERENT_LENGTHS = "columns of different lengths";

// The compiled loops index without checks, so what they are given is checked once before.
inline void check_offsets(const In<int64_t> &offsets, std::size_t rows) {
    check(offsets.size() > 0 && offsets.data()[0] == 0 &&
              offsets.data()[offsets.size() - 1] == int64_t(rows),
          "offsets do not cover the rows");
    for (std::size_t p = 1; p < offsets.size(); p++)
        check(offsets.data()[p - 1] <= offsets.data()[p], "offsets must not decrease");
}

template <typename T>
void check_below(const In<T> &column, int64_t bound, const char *what) {
    for (std::size_t i = 0; i < column.size(); i++)
        check(column.data()[i] >= 0 && int64_t(column.data()[i]) < bound, what);
}

}  // namespace popmodel
