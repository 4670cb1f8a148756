// A few numeric features of a node side by side: their ranges, and who is on which side of a cut.
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

// Nodes of at most so many rows have all their cuts scored side by side, from inner products.
inline constexpr std::size_t kFew = 32;

template <class T>
class Batch {
 public:
  static constexpr std::size_t width = 64 / sizeof(T);  // features at a time: a line of values

  // Fetches the values of some features, at most `width`, and finds their ranges.
  template <class Inputs>
  void load(const Inputs& X, std::span<const std::int32_t> features,
            std::span<const std::int32_t> rows) {
    rows_ = rows;
    if (lines_.size() < rows.size()) lines_.resize(rows.size());
    X.gather(features, rows, lines_.data()->x);
    find_ranges();
  }

  // Of the feature at place c: its range where present, and whether some value is missing.
  T low(std::size_t c) const { return low_.x[c]; }
  T high(std::size_t c) const { return high_.x[c]; }
  bool has_missing(std::size_t c) const { return missing_.x[c] != 0; }
  bool any_missing() const {
    return std::ranges::any_of(missing_.x, [](Word flag) { return flag != 0; });
  }

  // Draws a threshold within each feature's range, by the first of the `stride` numbers of a stream
  // that are the feature's own. Values up to it are on the left.
  void draw_thresholds(Rng stream, std::uint64_t stride, std::span<const std::int32_t> features);
  const double* thresholds() const { return threshold_; }

  // What each threshold gains, and the weight on its left: for at most kFew rows, whose inner
  // products (on and below the diagonal), weights and counts are given. Without missing values.
  struct Scores {
    alignas(64) double gain[width], left_weight[width];
  };
  void score(const double* gram, const double* weight, const double* count, const Gain& gain,
             Scores& scores) const;

  // Tells the sides of all rows apart, for what is below.
  void cut();

  std::size_t n_left(std::size_t c) const { return n_left_.x[c]; }

  // Lists the rows of one side of the cut of the feature at place c; returns how many they are.
  // Writes up to `slack` more than that.
  static constexpr std::size_t slack = 3;
  std::size_t list(std::size_t c, bool left, std::int32_t* out) const;

 private:
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr std::size_t bits = 8 * sizeof(T);  // rows whose sides fill a word

  template <class E>
  struct alignas(64) Line {
    E x[width];
  };

  // Of 64 rows a group, though a word may have less.
  std::size_t n_words() const { return (rows_.size() + 63) / 64 * (64 / bits); }
  void find_ranges();

  std::span<const std::int32_t> rows_;
  std::vector<Line<T>> lines_;     // row by row
  std::vector<Line<Word>> words_;  // sides of `bits` rows a line; the first row is the lowest bit
  Line<T> low_, high_;
  alignas(64) double threshold_[width];
  Line<T> rounded_;  // the largest T not above the threshold: of all T, the same ones are up to it
  Line<Word> missing_, n_left_;
};

}  // namespace okforest
