// Rows drawn with replacement, by content: a row's place in the draw depends on its inputs and not
// on its position, and its chance on its weight. So a shuffled training set, or one with rows
// repeated instead of weighted, gives the same draw.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "core/views.hpp"

namespace okforest {

class Bootstrap {
 public:
  template <class T>
  Bootstrap(const InputView<T>& X, std::span<const double> row_weight);

  // How often each row is drawn in n_draws draws.
  std::vector<std::int32_t> draw(std::int64_t n_draws, Rng rng) const;

 private:
  std::vector<std::int32_t> order_;        // rows by content
  std::vector<double> cumulative_weight_;  // along that order
};

}  // namespace okforest
