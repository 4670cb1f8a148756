// The vectors nearest to predictions, among a large number of prepared candidates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels.hpp"
#include "core/views.hpp"
#include "core/watch.hpp"

namespace okforest {

// Candidates in panels of 64: a panel holds coordinate after coordinate, the last panel padded.
struct CandidatePanels {
  static constexpr std::int64_t width = FloatFactor::lanes * FloatFactor::most_packs;

  std::int64_t n_coordinates;
  std::span<const float> half_squares;  // n_panels x width; infinite where padded
  std::span<const double> reach;        // n_panels: the largest norm in each

  std::int64_t n_panels() const { return static_cast<std::int64_t>(reach.size()); }
};

// Vectors of float32.
struct VectorPanels : CandidatePanels {
  std::span<const float> values;  // n_panels x n_coordinates x width

  float scores(std::int64_t p, std::span<const std::int32_t> coordinates, const float* query,
               float* to) const {
    return kernels().panel_scores(values.data() + p * n_coordinates * width, coordinates.data(),
                                  query, coordinates.size(), half_squares.data() + p * width, to);
  }

  // The sum of |query_j c_j| over coordinates is at most this.
  double size(std::int64_t p, double, double norm) const { return reach[p] * norm; }
};

// Vectors of zeros and ones, as bits.
struct BitPanels : CandidatePanels {
  std::span<const std::uint64_t> words;  // n_panels x n_coordinates: a bit for each candidate

  float scores(std::int64_t p, std::span<const std::int32_t> coordinates, const float* query,
               float* to) const {
    return kernels().bit_scores(words.data() + p * n_coordinates, query, coordinates.size(),
                                half_squares.data() + p * width, to);
  }

  double size(std::int64_t, double sum, double) const { return sum; }
};

// Candidates of each query, in compressed rows, ascending.
struct Survivors {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> candidates;
};

// For each query (a row of float64) the candidates that may be among the k of largest score
// <c, query> - half square, by a bound on the rounding of float32. None are listed where there
// would be more than `most`, so that all must be compared.
template <class Panels>
Survivors near_candidates(const MatrixView& queries, const Panels& panels, std::int64_t k,
                          std::int64_t most, int n_threads, Watch& watch);

}  // namespace okforest
