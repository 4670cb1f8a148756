#include "core/bootstrap.hpp"

#include "core/binomial.hpp"

namespace okforest {

Bootstrap::Bootstrap(std::span<const double> row_weight)
    : weight_(row_weight), weight_from_(row_weight.size() + 1, 0.0) {
  // Summed from the end: subtracting from the total would accumulate rounding errors.
  for (std::size_t i = row_weight.size(); i-- > 0;) {
    weight_from_[i] = row_weight[i] + weight_from_[i + 1];
  }
}

// Of the remaining draws, each row takes a binomial number, with probability its weight divided by
// the remaining weight. The last row of positive weight takes all that remain.
std::vector<std::int32_t> Bootstrap::draw(std::int32_t n_draws, std::uint64_t seed) const {
  std::vector<std::int32_t> times(weight_.size(), 0);
  std::int64_t n_left = n_draws;
  std::uint64_t position = 0;  // among the rows of positive weight
  for (std::size_t i = 0; n_left > 0; ++i) {
    if (weight_[i] == 0.0) continue;
    Rng rng(derive(seed, position++));
    const double own = weight_[i], later = weight_from_[i + 1], total = weight_from_[i];
    const std::int64_t n_own = own <= later ? binomial(n_left, own / total, rng)
                                            : n_left - binomial(n_left, later / total, rng);
    times[i] = static_cast<std::int32_t>(n_own);
    n_left -= n_own;
  }
  return times;
}

}  // namespace okforest
