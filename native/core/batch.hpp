// A few numeric features of a node, one per SIMD lane: their ranges, a random threshold for each,
// and the rows on both sides of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "core/gain.hpp"
#include "core/random.hpp"

namespace okforest {

// In nodes of at most this many rows, all cuts are scored at once from inner products.
inline constexpr std::size_t kSmallNode = 32;

template <class T>
class Batch {
 public:
  static constexpr std::size_t width = 64 / sizeof(T);  // features: a cache line of values

  // Gathers the values of at most `width` features and finds their ranges.
  template <class Inputs>
  void load(const Inputs& X, std::span<const std::int32_t> features,
            std::span<const std::int32_t> rows) {
    rows_ = rows;
    if (lines_.size() < rows.size()) lines_.resize(rows.size());
    X.gather(features, rows, lines_.data()->x);
    find_ranges();
  }

  // The range of the present values of the feature in lane c, and whether any value is missing.
  T low(std::size_t c) const { return low_.x[c]; }
  T high(std::size_t c) const { return high_.x[c]; }
  bool has_missing(std::size_t c) const { return missing_.x[c] != 0; }
  bool any_missing() const {
    return std::ranges::any_of(missing_.x, [](Word flag) { return flag != 0; });
  }

  // Draws a threshold within each feature's range; values up to it go left. Each feature has
  // `stride` numbers of the stream to itself, and uses the first of them.
  void draw_thresholds(Rng stream, std::uint64_t stride, std::span<const std::int32_t> features);
  const double* thresholds() const { return threshold_; }

  // The gain and the left weight of each threshold, for at most kSmallNode rows without missing
  // values. Takes the inner products of the rows (lower triangle), their weights and counts.
  struct Scores {
    alignas(64) double gain[width], left_weight[width];
  };
  void score(const double* gram, const double* weight, const double* count, const Gain& gain,
             Scores& scores) const;

  // Finds the side of every row, for n_left and list.
  void cut();

  std::size_t n_left(std::size_t c) const { return n_left_.x[c]; }

  // Lists the rows on one side of the cut of the feature in lane c, and returns their number.
  // Writes up to `slack` entries beyond them.
  static constexpr std::size_t slack = 3;
  std::size_t list(std::size_t c, bool left, std::int32_t* out) const;

 private:
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr std::size_t bits = 8 * sizeof(T);  // rows whose sides fill a word

  template <class E>
  struct alignas(64) Line {
    E x[width];
  };

  // Words for groups of 64 rows, even if a word has only 32 bits.
  std::size_t n_words() const { return (rows_.size() + 63) / 64 * (64 / bits); }
  void find_ranges();

  std::span<const std::int32_t> rows_;
  std::vector<Line<T>> lines_;     // row by row
  std::vector<Line<Word>> words_;  // sides of `bits` rows per line, the first in the lowest bit
  Line<T> low_, high_;
  alignas(64) double threshold_[width];
  Line<T> rounded_;  // the largest T <= threshold: comparing a T with either is the same
  Line<Word> missing_, n_left_;
};

}  // namespace okforest
