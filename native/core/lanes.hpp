// SIMD vectors of doubles.
#pragma once

#include "core/dispatch.hpp"

namespace okforest {

// Eight doubles: a cache line. The alignment is explicit, because without AVX-512 the compiler
// would choose a smaller one than the clones with AVX-512 rely on.
struct alignas(64) Lanes {
  typedef double Vector __attribute__((vector_size(64), aligned(64)));
  static constexpr int width = 8;
  Vector v;
};

// A single double, for scalar outputs.
struct Lane {
  static constexpr int width = 1;
  double v;
};

// An array of lanes as an array of doubles.
inline double* numbers(Lanes* lanes) { return reinterpret_cast<double*>(lanes); }

OKFOREST_INLINE double total(double v) { return v; }

OKFOREST_INLINE double total(const Lanes::Vector& v) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

}  // namespace okforest
