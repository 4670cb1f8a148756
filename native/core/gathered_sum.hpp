// Sums of single entries of a row of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

namespace okforest {

// The sum of row[place[k]], times weight[k] unless it is null, in eight running sums.
template <class T>
T gathered_sum(const T* row, const std::int32_t* place, const double* weight, std::size_t n) {
  T sums[8] = {};
  std::size_t k = 0;
  if (weight == nullptr) {
    for (; k + 8 <= n; k += 8) {
      for (int c = 0; c < 8; ++c) sums[c] += row[place[k + c]];
    }
    for (; k < n; ++k) sums[0] += row[place[k]];
  } else {
    for (; k + 8 <= n; k += 8) {
      for (int c = 0; c < 8; ++c) sums[c] += static_cast<T>(weight[k + c]) * row[place[k + c]];
    }
    for (; k < n; ++k) sums[0] += static_cast<T>(weight[k]) * row[place[k]];
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace okforest
