// Rows drawn with replacement, by content: a row's place in the draw depends on its inputs and not
// on its position, and its chance on its weight. So a shuffled training set, or one with rows
// repeated instead of weighted, gives the same draw (unless rows of equal inputs change places).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.hpp"

namespace okforest {

class Bootstrap {
 public:
  template <class Inputs>
  Bootstrap(const Inputs& X, std::span<const double> row_weight)
      : Bootstrap(row_keys(X), row_weight) {}

  // How often each row is drawn in n_draws draws, fewer if it is stopped.
  std::vector<std::int32_t> draw(std::int32_t n_draws, Rng rng,
                                 const std::atomic<bool>& stopped) const;

 private:
  Bootstrap(const std::vector<std::uint64_t>& keys, std::span<const double> row_weight);

  template <class Inputs>
  static std::vector<std::uint64_t> row_keys(const Inputs& X) {
    std::vector<std::uint64_t> keys(static_cast<std::size_t>(X.n_rows), 0);
    X.add_keys(keys);
    return keys;
  }

  std::vector<std::int32_t> order_;        // rows by content
  std::vector<double> cumulative_weight_;  // along that order
};

}  // namespace okforest
