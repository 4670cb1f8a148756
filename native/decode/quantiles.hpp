// Quantiles of outputs with weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/watch.hpp"

namespace okforest {

// Weights in compressed rows over outputs, and the rank of each output.
struct RankedWeights {
  std::span<const std::int64_t> offsets;  // n + 1
  std::span<const std::int32_t> columns;
  std::span<const double> values;
  std::span<const std::int32_t> ranks;

  std::int64_t n_rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// places[i * n_levels + l]: the rank of the first output up to which the weights of row i sum to at
// least the share levels[l] of their total. Where negative weights make the sum fall, its largest
// value so far counts; if it is never positive, all outputs weigh the same.
std::vector<std::int32_t> quantile_places(const RankedWeights& weights,
                                          std::span<const double> levels, int n_threads,
                                          Watch& watch);

}  // namespace okforest
