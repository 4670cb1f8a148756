// Sums of single entries of a row of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

namespace okforest {

// The sum of entry(k), times weight[k] unless it is null, in eight running sums.
template <class Entry>
auto gathered_sum(const Entry& entry, const double* weight, std::size_t n) {
  using T = decltype(entry(n));
  const auto term = [&](std::size_t k) {
    return weight == nullptr ? entry(k) : static_cast<T>(weight[k]) * entry(k);
  };
  T sums[8] = {};
  std::size_t k = 0;
  for (; k + 8 <= n; k += 8) {
    for (std::size_t c = 0; c < 8; ++c) sums[c] += term(k + c);
  }
  for (; k < n; ++k) sums[0] += term(k);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace okforest
