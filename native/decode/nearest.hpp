// The training outputs nearest to predictions, which are given by sparse weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels.hpp"  // for FloatFactor
#include "core/views.hpp"
#include "core/watch.hpp"

namespace okforest {

// Weights in compressed rows, over rows of a Gram matrix.
struct WeightsView {
  std::span<const std::int64_t> offsets;  // n + 1
  std::span<const std::int32_t> columns;
  std::span<const double> values;
  std::span<const std::int32_t> places;  // per column: the row of the Gram matrix

  std::int64_t n_rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// The Gram matrix of the candidates, and what a search in float32 needs: the matrix and half of the
// squared norms, both divided by the same number, and the largest entry of that matrix.
struct CandidatesView {
  MatrixView gram;
  std::span<const double> squares;
  FloatFactor floats;
  std::span<const float> half_squares;
  double largest;
};

struct Nearest {
  std::vector<std::int64_t> candidates;
  std::vector<double> costs;
};

// For each row of the weights, the candidate c with the least cost <c, c> - 2 <c, F>, the first of
// equals, and the cost. Candidates are searched in float32, and those that may be the nearest are
// compared in float64: the result is that of float64, always.
Nearest find_nearest(const WeightsView& weights, const CandidatesView& candidates, int n_threads,
                     Watch& watch);

}  // namespace okforest
