#include "core/gain.hpp"

#include <limits>

#include "core/dispatch.hpp"

namespace okforest {

namespace {

typedef double Doubles __attribute__((vector_size(64), aligned(64)));
typedef double Unaligned __attribute__((vector_size(64), aligned(8)));

OKFOREST_CLONES void extremes(const double* x, std::size_t n, double* least, double* most) {
  Doubles low = Doubles{} + std::numeric_limits<double>::infinity(), high = -low;
  std::size_t k = 0;
  for (; k + 8 <= n; k += 8) {
    const Doubles v = *reinterpret_cast<const Unaligned*>(x + k);
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  *least = low[0];
  *most = high[0];
  for (int c = 1; c < 8; ++c) {
    *least = std::min(*least, low[c]);
    *most = std::max(*most, high[c]);
  }
  for (; k < n; ++k) {
    *least = std::min(*least, x[k]);
    *most = std::max(*most, x[k]);
  }
}

OKFOREST_CLONES std::size_t number_from(double limit, const double* x, std::size_t n) {
  Doubles sums = {};
  std::size_t k = 0;
  for (; k + 8 <= n; k += 8) {
    const Doubles v = *reinterpret_cast<const Unaligned*>(x + k);
    sums += v < limit ? Doubles{} : Doubles{} + 1.0;
  }
  double sum = 0.0;
  for (int c = 0; c < 8; ++c) sum += sums[c];
  for (; k < n; ++k) sum += x[k] < limit ? 0.0 : 1.0;
  return static_cast<std::size_t>(sum);
}

}  // namespace

Range range_of(std::span<const double> gains) {
  Range range;
  extremes(gains.data(), gains.size(), &range.least, &range.most);
  return range;
}

std::size_t count_from(double limit, std::span<const double> gains) {
  return number_from(limit, gains.data(), gains.size());
}

}  // namespace okforest
