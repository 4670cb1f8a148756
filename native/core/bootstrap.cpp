#include "core/bootstrap.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace okforest {

template <class T>
Bootstrap::Bootstrap(const InputView<T>& X, std::span<const double> row_weight)
    : order_(static_cast<std::size_t>(X.n_rows)),
      cumulative_weight_(static_cast<std::size_t>(X.n_rows)) {
  std::vector<std::uint64_t> key(order_.size());
  for (std::int64_t i = 0; i < X.n_rows; ++i) {
    std::uint64_t hash = kGamma;
    for (std::int64_t j = 0; j < X.n_cols; ++j) {
      const double x = static_cast<double>(X(i, j)) + 0.0;  // both zeros are one value
      hash = derive(hash, std::bit_cast<std::uint64_t>(x));
    }
    key[i] = hash;
  }
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::int32_t a, std::int32_t b) { return key[a] < key[b]; });
  double sum = 0.0;
  for (std::size_t k = 0; k < order_.size(); ++k) {
    cumulative_weight_[k] = sum += row_weight[order_[k]];
  }
}

std::vector<std::int32_t> Bootstrap::draw(std::int64_t n_draws, Rng rng) const {
  std::vector<std::int32_t> times(order_.size(), 0);
  const auto begin = cumulative_weight_.begin(), end = cumulative_weight_.end();
  for (std::int64_t d = 0; d < n_draws; ++d) {
    // The first row whose share of the cumulative weight covers u; u < total, so there is one.
    const double u = rng.uniform() * cumulative_weight_.back();
    ++times[order_[std::min(std::upper_bound(begin, end, u), end - 1) - begin]];
  }
  return times;
}

template Bootstrap::Bootstrap(const InputView<float>&, std::span<const double>);
template Bootstrap::Bootstrap(const InputView<double>&, std::span<const double>);

}  // namespace okforest
