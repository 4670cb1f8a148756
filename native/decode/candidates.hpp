// The vectors nearest to predictions, among a large number of prepared candidates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels.hpp"
#include "core/views.hpp"
#include "core/watch.hpp"

namespace okforest {

// Candidates as vectors of float32, in panels of 64: a panel holds coordinate after coordinate, the
// last panel padded.
struct VectorPanels {
  static constexpr std::int64_t width = FloatFactor::lanes * FloatFactor::most_packs;

  std::span<const float> values;        // n_panels x n_coordinates x width
  std::span<const float> half_squares;  // n_panels x width; infinite where padded
  std::span<const double> reach;        // n_panels: the largest norm in each
  std::int64_t n_coordinates;

  std::int64_t n_panels() const { return static_cast<std::int64_t>(reach.size()); }
  const float* panel(std::int64_t p) const { return values.data() + p * n_coordinates * width; }
};

// Candidates of each query, in compressed rows, ascending.
struct Survivors {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> candidates;
};

// For each query (a row of float64) the candidates that may be among the k nearest, by a bound on
// the rounding of float32. None are listed where there would be more than `most`, so that all must
// be compared.
Survivors near_candidates(const MatrixView& queries, const VectorPanels& panels, std::int64_t k,
                          std::int64_t most, int n_threads, Watch& watch);

}  // namespace okforest
