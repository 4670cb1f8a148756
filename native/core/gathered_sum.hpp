// Sums of single entries of a row of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

namespace okforest {

// The sum of entry(k), times weight[k] unless it is null, in eight running sums.
template <class Entry>
auto gathered_sum(const Entry& entry, const double* weight, std::size_t n) {
  using T = decltype(entry(n));
  std::size_t k = 0;
  if (n < 8) {
    T sum = 0;
    for (; k < n; ++k) sum += weight == nullptr ? entry(k) : static_cast<T>(weight[k]) * entry(k);
    return sum;
  }
  T sums[8] = {};
  if (weight == nullptr) {
    for (; k + 8 <= n; k += 8) {
      for (int c = 0; c < 8; ++c) sums[c] += entry(k + c);
    }
    for (; k < n; ++k) sums[0] += entry(k);
  } else {
    for (; k + 8 <= n; k += 8) {
      for (int c = 0; c < 8; ++c) sums[c] += static_cast<T>(weight[k + c]) * entry(k + c);
    }
    for (; k < n; ++k) sums[0] += static_cast<T>(weight[k]) * entry(k);
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace okforest
