// A vector handed over to NumPy: its memory stays where it is and goes with the array.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

namespace popmodel {

template <typename T>
using Numpy = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;

template <typename T>
Numpy<T> numpy(std::vector<T> &&values) {
    auto *kept = new std::vector<T>(std::move(values));
    nanobind::capsule owner(kept,
                            [](void *data) noexcept { delete static_cast<std::vector<T> *>(data); });
    return Numpy<T>(kept->data(), {kept->size()}, owner);
}

}  // namespace popmodel
