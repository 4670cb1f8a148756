// Numbers side by side, that one instruction can take together.
#pragma once

#include "core/dispatch.hpp"

namespace okforest {

// Eight of them: one cache line. The alignment is spelt out because without AVX-512 the compiler
// would choose less, and a clone that has it counts on more.
struct alignas(64) Lanes {
  typedef double Vector __attribute__((vector_size(64), aligned(64)));
  static constexpr int width = 8;
  Vector v;
};

// A single one, for scalar outputs.
struct Lane {
  static constexpr int width = 1;
  double v;
};

// The numbers of lanes that lie one after the other.
inline double* numbers(Lanes* lanes) { return reinterpret_cast<double*>(lanes); }

OKFOREST_INLINE double total(double v) { return v; }

OKFOREST_INLINE double total(const Lanes::Vector& v) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

}  // namespace okforest
