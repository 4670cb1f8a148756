#include "core/bootstrap.hpp"

#include <algorithm>
#include <numeric>

namespace okforest {

Bootstrap::Bootstrap(const std::vector<std::uint64_t>& keys, std::span<const double> row_weight)
    : order_(keys.size()), cumulative_weight_(keys.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::int32_t a, std::int32_t b) { return keys[a] < keys[b]; });
  double sum = 0.0;
  for (std::size_t k = 0; k < order_.size(); ++k) {
    cumulative_weight_[k] = sum += row_weight[order_[k]];
  }
}

std::vector<std::int32_t> Bootstrap::draw(std::int32_t n_draws, Rng rng,
                                          const std::atomic<bool>& stopped) const {
  std::vector<std::int32_t> times(order_.size(), 0);
  const auto begin = cumulative_weight_.begin(), end = cumulative_weight_.end();
  for (std::int32_t d = 0; d < n_draws && !stopped; ++d) {
    // The first row whose share of the cumulative weight covers u; u < total, so there is one.
    const double u = rng.uniform() * cumulative_weight_.back();
    ++times[order_[std::min(std::upper_bound(begin, end, u), end - 1) - begin]];
  }
  return times;
}

}  // namespace okforest
