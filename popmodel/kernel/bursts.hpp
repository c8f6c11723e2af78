// Times of computing before operations: whole nanoseconds of 32 bits where all of them fit, which
// halves the longest column of a program, else of 64 bits with a fraction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numpy.hpp"

namespace popmodel {

class Bursts {
  public:
    using Column =
        nanobind::ndarray<nanobind::ro, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

    explicit Bursts(const Column &column) {
        if (column.dtype() == nanobind::dtype<uint32_t>())
            narrow_ = static_cast<const uint32_t *>(column.data());
        else if (column.dtype() == nanobind::dtype<double>())
            wide_ = static_cast<const double *>(column.data());
        else
            throw std::invalid_argument("bursts must be float64 or uint32");
    }

    double operator[](int64_t i) const { return narrow_ ? double(narrow_[i]) : wide_[i]; }

  private:
    const uint32_t *narrow_ = nullptr;
    const double *wide_ = nullptr;
};

} // namespace popmodel
