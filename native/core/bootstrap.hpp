// Bootstrap samples: rows drawn with replacement, with probability proportional to their weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace okforest {

class Bootstrap {
 public:
  // Weights are >= 0 with a positive, finite sum, and must outlive the bootstrap.
  explicit Bootstrap(std::span<const double> row_weight);

  // How often each row is drawn in n_draws draws: in time proportional to the number of rows,
  // whatever n_draws. The random numbers of a row depend on the seed and on its position among the
  // rows of positive weight: a row of weight zero is equivalent to no row.
  std::vector<std::int32_t> draw(std::int32_t n_draws, std::uint64_t seed) const;

 private:
  std::span<const double> weight_;
  std::vector<double> weight_from_;  // by row: its weight and that of all later rows; then 0
};

}  // namespace okforest
