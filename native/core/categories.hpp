// The categories of a feature that are present in a node, and inner products of their outputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/inputs.hpp"
#include "core/rules.hpp"

namespace okforest {

// Up to this many categories, counting missing values as one, every subset is tried.
inline constexpr std::size_t kMaxExhaustive = 10;

class Groups {
 public:
  // Groups a node's values by category, in ascending order of codes.
  template <class T>
  void assign(std::span<Value<T>> values, std::int32_t n_categories) {
    codes_.clear();
    place_.assign(static_cast<std::size_t>(n_categories), -1);
    for (const auto& value : values) {
      auto& place = place_[static_cast<std::size_t>(value.x)];
      if (place < 0) codes_.push_back(static_cast<std::int32_t>(value.x));
      place = 0;
    }
    std::sort(codes_.begin(), codes_.end());
    for (std::size_t g = 0; g < codes_.size(); ++g) {
      place_[codes_[g]] = static_cast<std::int32_t>(g);
    }
  }

  std::size_t size() const { return codes_.size(); }
  std::int32_t code(std::size_t group) const { return codes_[group]; }
  template <class T>
  std::size_t of(T x) const {
    return static_cast<std::size_t>(place_[static_cast<std::size_t>(x)]);
  }

  // Computes the weights and counts of the groups, and the inner products of their sums of outputs
  // around the node's mean. Missing values, if any, are one more group.
  template <class T, class S>
  void measure(S& scorer, const typename S::Frame& frame, const Sample& sample,
               std::span<Value<T>> values, std::span<const std::int32_t> missing) {
    const std::size_t n = size() + !missing.empty();
    weight_.assign(n, 0.0);
    count_.assign(n, 0.0);
    rows_.clear();
    group_.clear();
    for (const auto& value : values) add(value.row, static_cast<std::int32_t>(of(value.x)), sample);
    for (const auto row : missing) add(row, static_cast<std::int32_t>(n - 1), sample);
    gram_.assign(n * n, 0.0);
    scorer.group_gram(frame, rows_, group_, weight_, gram_);
  }

  double weight(std::size_t group) const { return weight_[group]; }
  double count(std::size_t group) const { return count_[group]; }
  const std::vector<double>& gram() const { return gram_; }

  // The rank of each group along the first principal direction of the groups' means: the leading
  // eigenvector of D^-1/2 G D^-1/2, with G the inner products of sums and D the weights.
  std::vector<std::int32_t> principal_order() const {
    const std::size_t n = size();
    std::vector<double> scaled(n * n), vector(n), next(n);
    std::size_t start = 0;
    for (std::size_t g = 0; g < n; ++g) {
      for (std::size_t h = 0; h < n; ++h) {
        scaled[g * n + h] = gram_[g * n + h] / std::sqrt(weight_[g] * weight_[h]);
      }
      if (scaled[g * n + g] > scaled[start * n + start] * (1.0 + 1e-9)) start = g;
    }
    const auto multiply = [&] {
      for (std::size_t g = 0; g < n; ++g) {
        next[g] = std::inner_product(vector.begin(), vector.end(), &scaled[g * n], 0.0);
      }
    };
    for (std::size_t g = 0; g < n; ++g) vector[g] = scaled[g * n + start];
    for (int step = 0; step < 64; ++step) {
      multiply();
      double norm = 0.0;
      for (const double x : next) norm += x * x;
      if (norm == 0.0) break;
      for (std::size_t g = 0; g < n; ++g) vector[g] = next[g] / std::sqrt(norm);
    }
    multiply();
    // Coordinates of the means. The sign of an eigenvector is arbitrary: the first category's is
    // not positive.
    for (std::size_t g = 0; g < n; ++g) next[g] /= std::sqrt(weight_[g]);
    const double sign = next[0] > 0.0 ? -1.0 : 1.0;
    double largest = 0.0;
    for (const double x : next) largest = std::max(largest, std::abs(x));
    // Rounded to nine digits, so that values that differ by rounding errors tie, and are ordered by
    // code.
    for (double& x : next) x = largest > 0.0 ? std::nearbyint(sign * x / largest * 1e9) : 0.0;
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::size_t g) { return next[g]; });
    std::vector<std::int32_t> rank(n);
    for (std::size_t k = 0; k < n; ++k) rank[order[k]] = static_cast<std::int32_t>(k);
    return rank;
  }

  // Adds the categories that are absent from the node to a set of codes.
  void add_absent(std::vector<std::uint64_t>& subset) const {
    for (std::size_t code = 0; code < place_.size(); ++code) {
      if (place_[code] < 0) subset[code / 64] |= 1ULL << (code % 64);
    }
  }

 private:
  void add(std::int32_t row, std::int32_t group, const Sample& sample) {
    rows_.push_back(row);
    group_.push_back(group);
    weight_[group] += sample.weight[row];
    count_[group] += sample.count[row];
  }

  std::vector<std::int32_t> codes_;  // of the groups, ascending
  std::vector<std::int32_t> place_;  // code -> group, -1 if absent
  std::vector<double> weight_, count_, gram_;
  std::vector<std::int32_t> rows_, group_;
};

}  // namespace okforest
