// The values of sparse inputs other than zero, in a node, and random cuts of them. What is done for
// a feature takes time in proportion to these values, not to the rows of the node.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/cuts.hpp"  // for Smaller
#include "core/inputs.hpp"
#include "core/random.hpp"
#include "core/rules.hpp"

namespace okforest {

template <class Inputs>
class StoredValues {
 public:
  using Values = std::span<Value<typename Inputs::Element>>;

  explicit StoredValues(const Inputs& X) : X_(X) {
    if constexpr (!Inputs::is_dense) {
      if (X.mostly_zeros()) place_.resize(static_cast<std::size_t>(X.n_rows));
    }
  }

  // Whether the inputs are sparse enough for zeros to be skipped.
  bool in_use() const { return !place_.empty(); }

  // Begins a node.
  void enter(const Sample& sample, Rows rows, double weight) {
    if (!in_use()) return;
    sample_ = sample;
    rows_ = rows;
    weight_ = weight;
    for (std::size_t k = 0; k < rows.size(); ++k) place_[rows[k]] = static_cast<std::int32_t>(k);
    if (buffer_.size() < rows.size()) buffer_.resize(rows.size());
  }

  bool all_zeros(std::int32_t feature) { return in_use() && of(feature).empty(); }

  // The sorted values of a feature other than zero, unless they have more than this weight, or some
  // are missing, or none is zero.
  std::optional<Values> sorted(std::int32_t feature, double most) {
    const Values values = of(feature);
    double weight = 0.0;
    for (auto& value : values) {
      if (std::isnan(value.x)) return {};
      value.row = rows_[value.row];
      weight += sample_.weight[value.row];
    }
    if (values.size() == rows_.size() || weight > most) return {};
    std::ranges::sort(values, {}, &Value<typename Inputs::Element>::x);
    return values;
  }

  // Draws cuts of at most kCutWidth features and lists their sides without the zeros. They are
  // unknown if that side is the heavier one, values are missing, or none is zero; and valid until
  // the next call.
  template <class Draws>
  std::span<const Smaller> cut(Rows features, const Draws& draws_of, double* thresholds) {
    n_blocks_ = (rows_.size() + kRowBlock - 1) / kRowBlock;
    block_ends_.resize(kCutWidth * n_blocks_);
    for (std::size_t c = 0; c < features.size(); ++c) {
      sides_[c] = cut(c, of(features[c]), draws_of(features[c]), thresholds[c]);
    }
    return std::span(sides_).first(features.size());
  }

 private:
  // The values of a feature other than zero, and the places of their rows in the node.
  Values of(std::int32_t feature) {
    if constexpr (Inputs::is_dense) {
      return {};
    } else {
      return std::span(buffer_).first(
          X_.gather_stored(feature, rows_, place_.data(), buffer_.data()));
    }
  }

  Smaller cut(std::size_t c, Values values, Rng draws, double& threshold) {
    const Smaller unknown{.is_unknown = true};
    if (values.empty()) return {};
    if (values.size() == rows_.size()) return unknown;
    double low = 0.0, high = 0.0;
    for (const auto& value : values) {
      if (std::isnan(value.x)) return unknown;
      low = std::min<double>(low, value.x);
      high = std::max<double>(high, value.x);
    }
    threshold = uniform_between(low, high, draws.uniform());
    const bool is_left = threshold < 0.0;
    std::int32_t* const ends = block_ends_.data() + c * n_blocks_;
    std::fill_n(ends, n_blocks_, 0);
    listed_[c].clear();
    for (const auto& value : values) {
      if ((value.x <= threshold) != is_left) continue;
      listed_[c].push_back(rows_[value.row]);
      ++ends[value.row / static_cast<std::int32_t>(kRowBlock)];
    }
    for (std::size_t b = 1; b < n_blocks_; ++b) ends[b] += ends[b - 1];
    const double weight = sample_.weight_of(listed_[c]);
    if (2.0 * weight > weight_) return unknown;
    return {{listed_[c], ends, weight}, is_left};
  }

  const Inputs& X_;
  Sample sample_{};
  Rows rows_;
  double weight_ = 0.0;
  std::vector<std::int32_t> place_;  // training row -> place in the node, of its rows
  std::vector<Value<typename Inputs::Element>> buffer_;
  Smaller sides_[kCutWidth];
  std::vector<std::int32_t> listed_[kCutWidth];
  std::vector<std::int32_t> block_ends_;
  std::size_t n_blocks_ = 0;
};

}  // namespace okforest
