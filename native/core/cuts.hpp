// Cuts of a node, for a few numeric features at a time, one per SIMD lane: the ranges of their
// values, a random threshold for each, and the rows on both sides of it; or the sorted values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/inputs.hpp"
#include "core/kernels.hpp"
#include "core/random.hpp"
#include "core/rules.hpp"

namespace okforest {

// The smaller side of a cut, by weight; empty if the feature is constant.
struct Smaller {
  Side side{};
  bool is_left = false;
  bool is_unknown = false;  // whether the cut cannot be scored from the side
  bool any_missing = false;
};

template <class T>
class Cuts {
 public:
  // Gathers the values of at most kCutWidth features and finds their ranges. With `as_bytes`, they
  // stay bytes: only classes of rows of weight one can be scored then.
  template <class Inputs>
  void load(const Inputs& X, Rows features, Rows rows, bool as_bytes) {
    rows_ = rows;
    features_ = features;
    as_bytes_ = as_bytes;
    any_missing_ = false;
    if (!as_bytes) {
      grow_to(lines_, rows.size());
      X.gather(features, rows, lines_.data()->x);
      any_missing_ = of_type().ranges(lines_.data()->x, rows.size(), low_.x, high_.x, missing_);
    } else if constexpr (Inputs::has_bytes) {
      grow_to(bytes_, rows.size());
      X.gather(features, rows, bytes_.data()->x);
      kernels().byte_cuts.ranges(bytes_.data()->x, rows.size(), low_.x, high_.x, missing_);
    }
    for (std::size_t c = size(); c < kCutWidth; ++c) low_.x[c] = high_.x[c] = 0;  // unused lanes
  }

  // Draws a threshold within each feature's range; values up to it go left. Each feature has
  // `stride` numbers of the stream to itself, and uses the first of them; the second one, if values
  // are missing. There is room for kCutWidth thresholds.
  void draw(Rng stream, std::uint64_t stride, const Sample& sample, double* thresholds) {
    alignas(64) std::int32_t padded[kCutWidth] = {};
    std::ranges::copy(features_, padded);
    of_type().thresholds(stream, stride, padded, low_.x, high_.x, thresholds, rounded_.x);
    if (any_missing_) place_missing(stream, stride, sample);
  }

  // Gathers the values of some features and sorts them, unless some are missing.
  template <class Inputs>
  void sort(const Inputs& X, Rows features, Rows rows) {
    load(X, features, rows, false);
    grow_to(words_, rows.size());
    grow_to(sorted_, rows.size());
    of_type().places(lines_.data()->x, rows.size(), words_.data()->x);
  }
  std::span<const Value<T>> sorted(std::size_t c) {
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      sorted_[words_[k].x[c]] = {lines_[k].x[c], rows_[k]};
    }
    return std::span(sorted_).first(rows_.size());
  }

  std::size_t size() const { return features_.size(); }
  bool any_missing() const { return any_missing_; }
  bool has_missing(std::size_t c) const { return any_missing_ && missing_[c]; }
  bool is_constant(std::size_t c) const { return !(low_.x[c] < high_.x[c]); }
  // Whether a cut parts missing values from all others, which is not scored here.
  bool is_unknown(std::size_t c) const { return has_missing(c) && is_constant(c); }

  // The gains of all cuts of a small node.
  void score_small(const SmallGram& gram, const RowWeights& rows, const Gain& gain,
                   const CutGains& out) const {
    of_type().small_gains(cut(lines_), gram, rows, gain, out);
  }

  // The same for a node of any size with one output, given w_i (y_i - mean).
  void score_values(const double* values, const RowWeights& rows, const Gain& gain,
                    const CutGains& out) const {
    of_type().scalar_gains(cut(lines_), values, rows, gain, out);
  }

  // The same if outputs are classes, given those of the rows and their shares in the node. Weights
  // and counts are not read if values stayed bytes.
  void score_classes(const std::int32_t* classes, std::span<const double> shares,
                     const RowWeights& rows, const Gain& gain, const CutGains& out) {
    grow_to(counts_, shares.size());
    double* const counts = counts_.data()->x;
    if constexpr (sizeof(T) == sizeof(float)) {
      if (as_bytes_) {
        return kernels().byte_cuts.class_gains(cut(bytes_), classes, shares, rows, gain, counts,
                                               out);
      }
    }
    of_type().class_gains(cut(lines_), classes, shares, rows, gain, counts, out);
  }

  // Makes room for the sides of some cuts of a node, at most kMaxSides.
  void reserve_sides(std::size_t n_rows, std::size_t n_sides) {
    grow_to(words_, (n_rows + 63) / 64 * (64 / (8 * sizeof(Word))));
    grow_to(listed_, n_sides * (n_rows + kListSlack));
    grow_to(block_ends_, n_sides * n_blocks(n_rows));
  }

  // Lists the smaller sides of all cuts. The first of them is number `first` of those that there is
  // room for.
  void list_sides(const Sample& sample, double total_weight, std::size_t first) {
    const std::size_t n = rows_.size();
    of_type().sides(lines_.data()->x, n, rounded_.x, words_.data()->x, n_left_);
    for (std::size_t c = 0; c < size(); ++c) {
      Smaller& smaller = smaller_[first + c] = {};
      smaller.is_unknown = is_unknown(c);
      smaller.any_missing = has_missing(c);
      if (smaller.is_unknown || is_constant(c)) continue;
      smaller.is_left = 2 * static_cast<std::size_t>(n_left_[c]) <= n;
      smaller.side = list(c, smaller.is_left, first + c);
      smaller.side.weight = sample.weight_of(smaller.side.rows);
      if (2.0 * smaller.side.weight > total_weight) {  // fewer rows, but more weight
        smaller.is_left = !smaller.is_left;
        smaller.side = list(c, smaller.is_left, first + c);
        smaller.side.weight = sample.weight_of(smaller.side.rows);
      }
    }
  }
  std::span<const Smaller> listed(std::size_t n) const { return {smaller_, n}; }

 private:
  using Word = typename CutKernels<T>::Word;
  static constexpr std::size_t kListSlack = 4;  // entries that a list may write beyond its end

  // Scratch memory never shrinks: what is added would be filled with zeros every time.
  template <class E>
  static void grow_to(std::vector<E>& memory, std::size_t n) {
    if (memory.size() < n) memory.resize(n);
  }

  static const CutKernels<T>& of_type() { return kernels().cuts<T>(); }

  template <class E>
  struct alignas(sizeof(E) == 1 ? kCutWidth : 64) Line {
    E x[kCutWidth];
  };

  template <class Stored>
  CutLines<Stored, T> cut(const std::vector<Line<Stored>>& lines) const {
    return {lines.data()->x, rows_.size(), rounded_.x, low_.x, high_.x};
  }

  // Gives missing values a value on a random side of their cut, with probability proportional to
  // the weight of the others there.
  void place_missing(Rng stream, std::uint64_t stride, const Sample& sample) {
    weights_.resize(sample.plain ? 0 : rows_.size());
    for (std::size_t k = 0; k < weights_.size(); ++k) weights_[k] = sample.weight[rows_[k]];
    Line<double> left, present;
    of_type().present_weights(lines_.data()->x, rows_.size(), rounded_.x,
                              sample.plain ? nullptr : weights_.data(), left.x, present.x);
    Line<T> value = high_;
    for (std::size_t c = 0; c < size(); ++c) {
      const auto feature = static_cast<std::uint64_t>(features_[c]);
      const double u = stream.ahead(feature * stride + 1).uniform();
      if (u * present.x[c] < left.x[c]) value.x[c] = low_.x[c];
    }
    of_type().fill_missing(lines_.data()->x, rows_.size(), value.x);
  }

  static std::size_t n_blocks(std::size_t n_rows) { return (n_rows + kRowBlock - 1) / kRowBlock; }

  Side list(std::size_t c, bool left, std::size_t number) {
    std::int32_t* const out = listed_.data() + number * (rows_.size() + kListSlack);
    std::int32_t* const ends = block_ends_.data() + number * n_blocks(rows_.size());
    const std::size_t n =
        of_type().list(&words_.data()->x[c], rows_.data(), rows_.size(), !left, out, ends);
    return {{out, n}, ends, 0.0};
  }

  Rows rows_, features_;
  std::vector<Line<T>> lines_;             // row by row
  std::vector<Line<std::uint8_t>> bytes_;  // the same, if values stay bytes
  std::vector<Line<Word>> words_;  // sides of 32 or 64 rows per line, the first in the lowest bit;
                                   // or the place of each row among the sorted ones
  std::vector<Value<T>> sorted_;
  std::vector<std::int32_t> listed_, block_ends_;
  std::vector<double> weights_;
  std::vector<Line<double>> counts_;  // of classes, on the left of each cut
  Line<T> low_, high_;
  Line<T> rounded_;  // the largest T <= a threshold: comparing a T with either is the same
  bool as_bytes_ = false, any_missing_ = false, missing_[kCutWidth];
  std::int64_t n_left_[kCutWidth];
  Smaller smaller_[kMaxSides];
};

}  // namespace okforest
