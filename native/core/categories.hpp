// The categories of a feature that are present in a node, and inner products of their outputs.
#pragma once

#include <algorithm>
#include <array>
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
    collect(sample, values, n);
    for (const auto row : missing) add(row, static_cast<std::int32_t>(n - 1), sample);
    gram_.assign(n * n, 0.0);
    scorer.group_gram(frame, rows_, group_, weight_, gram_);
  }

  // The rank of each group along the first principal direction of the groups' means: the leading
  // eigenvector of D^-1/2 G D^-1/2, with G the inner products of sums and D the weights. For a
  // single output, this is the order of the means.
  template <class T, class S>
  std::vector<std::int32_t> principal_order(S& scorer, const typename S::Frame& frame,
                                            const Sample& sample, std::span<Value<T>> values) {
    collect(sample, values, size());
    const std::size_t width = scorer.group_width(frame);
    if (width == 0 || width > size()) {
      gram_.assign(size() * size(), 0.0);
      scorer.group_gram(frame, rows_, group_, weight_, gram_);
      return ranks_along(direction_of_gram());
    }
    sums_.assign(size() * width, 0.0);
    scorer.group_sums(frame, rows_, group_, weight_, sums_);
    return ranks_along(direction_of_sums(width));
  }

  double weight(std::size_t group) const { return weight_[group]; }
  double count(std::size_t group) const { return count_[group]; }
  const std::vector<double>& gram() const { return gram_; }

  // The places, in the order of a Gray code, of subsets of the groups that were measured: those
  // that hold the first group, and not all. For a single output, the cuts of the order of means,
  // which hold the best subset, are enough.
  std::span<const std::uint32_t> all_places() {
    places_.clear();
    const std::uint32_t n = 1u << (weight_.size() - 1);
    for (std::uint32_t place = 0; place < n; ++place) {
      if ((place ^ place >> 1) != n - 1) places_.push_back(place);
    }
    return places_;
  }
  std::span<const std::uint32_t> places_of_cuts() {
    const std::size_t n = weight_.size(), last = n - 1;
    const std::size_t far = longest([&](std::size_t g) { return gram_[g * n + g]; }, n);
    std::array<std::uint32_t, kMaxExhaustive> order{};
    std::iota(order.begin(), order.begin() + n, 0u);
    std::sort(order.begin(), order.begin() + n, [&](std::uint32_t g, std::uint32_t h) {
      return gram_[g * n + far] * weight_[h] < gram_[h * n + far] * weight_[g];
    });
    places_.clear();
    std::uint32_t below = 0;
    for (std::size_t k = 0; k < last; ++k) {
      below |= 1u << order[k];
      const std::uint32_t left = (below & 1) != 0 ? below : ((1u << n) - 1) & ~below;
      std::uint32_t place = left >> 1;
      for (std::uint32_t shift = 1; shift < 16; shift <<= 1) place ^= place >> shift;
      places_.push_back(place);
    }
    std::ranges::sort(places_);
    return places_;
  }

  // Adds the categories that are absent from the node to a set of codes.
  void add_absent(std::vector<std::uint64_t>& subset) const {
    for (std::size_t code = 0; code < place_.size(); ++code) {
      if (place_[code] < 0) subset[code / 64] |= 1ULL << (code % 64);
    }
  }

 private:
  static constexpr int kMaxSteps = 64;
  static constexpr double kConverged = 1e-21;  // squared change of a vector of length one

  template <class T>
  void collect(const Sample& sample, std::span<Value<T>> values, std::size_t n) {
    weight_.assign(n, 0.0);
    count_.assign(n, 0.0);
    rows_.clear();
    group_.clear();
    for (const auto& value : values) add(value.row, static_cast<std::int32_t>(of(value.x)), sample);
  }

  // Multiplies a vector by a matrix until its direction does not change.
  template <class F>
  static void iterate(std::vector<double>& vector, std::vector<double>& next, F&& multiply) {
    for (int step = 0; step < kMaxSteps; ++step) {
      multiply();
      double norm = 0.0, change = 0.0;
      for (const double x : next) norm += x * x;
      if (norm == 0.0) break;
      norm = std::sqrt(norm);
      for (std::size_t k = 0; k < vector.size(); ++k) {
        const double x = next[k] / norm;
        change += (x - vector[k]) * (x - vector[k]);
        vector[k] = x;
      }
      if (change < kConverged) break;
    }
    multiply();
  }

  // The group whose norm, relative to its weight, is the largest.
  template <class F>
  std::size_t longest(F&& squared_norm, std::size_t n) const {
    std::size_t start = 0;
    double most = 0.0;
    for (std::size_t g = 0; g < n; ++g) {
      const double norm = squared_norm(g) / weight_[g];
      if (g > 0 && norm <= most * (1.0 + 1e-9)) continue;
      start = g;
      most = norm;
    }
    return start;
  }

  // Coordinates of the groups' means, up to a factor, from the inner products of their sums.
  std::vector<double> direction_of_gram() const {
    const std::size_t n = size();
    std::vector<double> scaled(n * n), vector(n), next(n);
    for (std::size_t g = 0; g < n; ++g) {
      for (std::size_t h = 0; h < n; ++h) {
        scaled[g * n + h] = gram_[g * n + h] / std::sqrt(weight_[g] * weight_[h]);
      }
    }
    const std::size_t start = longest([&](std::size_t g) { return gram_[g * n + g]; }, n);
    for (std::size_t g = 0; g < n; ++g) vector[g] = scaled[g * n + start];
    iterate(vector, next, [&] {
      for (std::size_t g = 0; g < n; ++g) {
        next[g] = std::inner_product(vector.begin(), vector.end(), &scaled[g * n], 0.0);
      }
    });
    for (std::size_t g = 0; g < n; ++g) next[g] /= std::sqrt(weight_[g]);
    return next;
  }

  // The same from the sums, with products of n x width instead of n x n.
  std::vector<double> direction_of_sums(std::size_t width) const {
    const std::size_t n = size();
    const auto row = [&](std::size_t g) { return &sums_[g * width]; };
    std::vector<double> vector(1, 1.0), next(width), along(n);
    if (width > 1) {
      const std::size_t start = longest(
          [&](std::size_t g) { return std::inner_product(row(g), row(g) + width, row(g), 0.0); },
          n);
      vector.assign(row(start), row(start) + width);
      iterate(vector, next, [&] {
        std::fill(next.begin(), next.end(), 0.0);
        for (std::size_t g = 0; g < n; ++g) {
          const double part =
              std::inner_product(vector.begin(), vector.end(), row(g), 0.0) / weight_[g];
          for (std::size_t j = 0; j < width; ++j) next[j] += part * row(g)[j];
        }
      });
    }
    for (std::size_t g = 0; g < n; ++g) {
      along[g] = std::inner_product(vector.begin(), vector.end(), row(g), 0.0) / weight_[g];
    }
    return along;
  }

  std::vector<std::int32_t> ranks_along(std::vector<double> coordinates) const {
    // The sign of a direction is arbitrary: the first category's coordinate is not positive.
    const double sign = coordinates[0] > 0.0 ? -1.0 : 1.0;
    double largest = 0.0;
    for (const double x : coordinates) largest = std::max(largest, std::abs(x));
    // Rounded to nine digits, so that values that differ by rounding errors tie, and are ordered by
    // code.
    for (double& x : coordinates) {
      x = largest > 0.0 ? std::nearbyint(sign * x / largest * 1e9) : 0.0;
    }
    std::vector<std::size_t> order(coordinates.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::size_t g) { return coordinates[g]; });
    std::vector<std::int32_t> rank(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) rank[order[k]] = static_cast<std::int32_t>(k);
    return rank;
  }

  void add(std::int32_t row, std::int32_t group, const Sample& sample) {
    rows_.push_back(row);
    group_.push_back(group);
    weight_[group] += sample.weight[row];
    count_[group] += sample.count[row];
  }

  std::vector<std::int32_t> codes_;  // of the groups, ascending
  std::vector<std::int32_t> place_;  // code -> group, -1 if absent
  std::vector<double> weight_, count_, gram_, sums_;
  std::vector<std::int32_t> rows_, group_;
  std::vector<std::uint32_t> places_;
};

}  // namespace okforest
