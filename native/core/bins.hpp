// Numeric features in bins: each value as a byte, so that splits are searched among the boundaries
// of bins. A feature of few values has one bin for each of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_array.hpp"
#include "core/inputs.hpp"
#include "core/watch.hpp"

namespace okforest {

inline constexpr std::int32_t kMostBins = 255;  // one code is left for missing values

class Bins {
 public:
  // Features whose codes are stored together, row by row: a row of a tile is read at once.
  static constexpr std::int64_t kTile = 8;

  // The boundaries are quantiles of the rows of positive weight, as if each row were repeated as
  // often as its weight; of very many rows, a part that the seed draws decides. The codes of rows
  // of weight zero have no meaning; their values are kept instead.
  template <class Inputs>
  Bins(const Inputs& X, std::span<const double> row_weight, std::int32_t most, std::uint64_t seed,
       int n_threads, Watch& watch);

  std::int64_t n_rows() const { return n_rows_; }
  std::int64_t n_features() const { return static_cast<std::int64_t>(edges_.size()); }
  std::int64_t n_tiles() const { return (n_features() + kTile - 1) / kTile; }

  // The number of bins of a feature, which is also the code of its missing values.
  std::int32_t n_bins(std::int32_t feature) const {
    return static_cast<std::int32_t>(low_[feature].size());
  }

  // The codes of a tile, kTile for each row, and the code of a value.
  const std::uint8_t* tile(std::int64_t tile) const {
    return codes_.data() + tile * n_rows_ * kTile;
  }
  std::uint8_t code(std::int64_t row, std::int32_t feature) const {
    return tile(feature / kTile)[row * kTile + feature % kTile];
  }

  // A cut of a feature: codes up to `last` go left, and so do values up to the threshold.
  struct Cut {
    std::int32_t last;
    double threshold;
  };

  // The cut between two bins, of which a node has no value in between; the upper one may be that of
  // missing values. It is halfway between the values of the two, unless it would divide a bin.
  Cut cut_between(std::int32_t feature, std::int32_t lower, std::int32_t upper) const;

  // The rows of weight zero, and a value of one of them, given by its place among them.
  std::span<const std::int32_t> unused() const { return unused_; }
  double unused_value(std::size_t k, std::int32_t feature) const {
    return unused_values_[k * edges_.size() + feature];
  }

 private:
  std::int64_t n_rows_;
  // For each feature, edges: a value is in the bin of the first edge that is not less.
  std::vector<std::vector<double>> edges_;
  std::vector<std::vector<double>> low_, high_;  // the least and the largest value of each bin
  AlignedArray<std::uint8_t> codes_;
  std::vector<std::int32_t> unused_;
  std::vector<double> unused_values_;
};

}  // namespace okforest
