// Sums of single entries of a row of a matrix.
#pragma once

#include <cstddef>

namespace okforest {

// The sum of entry(k) for k < n, in eight running sums.
template <class Entry>
[[gnu::always_inline]] inline double gathered_sum(const Entry& entry, std::size_t n) {
  double sums[8] = {};
  std::size_t k = 0;
  for (; k + 8 <= n; k += 8) {
    for (std::size_t c = 0; c < 8; ++c) sums[c] += entry(k + c);
  }
  for (; k < n; ++k) sums[0] += entry(k);
  if (n < 8) return sums[0];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace okforest
