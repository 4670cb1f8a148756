// The features in a random order, drawn one by one.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/random.hpp"

namespace okforest {

class FeatureOrder {
 public:
  explicit FeatureOrder(std::int64_t n_features) : natural_(static_cast<std::size_t>(n_features)) {
    std::iota(natural_.begin(), natural_.end(), 0);
    features_ = natural_;
  }

  std::size_t size() const { return features_.size(); }
  std::size_t n_drawn() const { return n_drawn_; }

  // Draws features uniformly, without replacement, until n of them are drawn.
  void draw(Rng& rng, std::size_t n) {
    const auto size = static_cast<std::uint32_t>(features_.size());
    if (swaps_.size() < n) swaps_.resize(n);
    for (auto k = static_cast<std::uint32_t>(n_drawn_); k < n; ++k) {
      const std::uint32_t pick = k + rng.below(size - k);
      std::swap(features_[k], features_[pick]);
      swaps_[k] = pick;
    }
    n_drawn_ = n;
  }

  // Draws one more feature.
  std::int32_t draw(Rng& rng) {
    draw(rng, n_drawn_ + 1);
    return features_[n_drawn_ - 1];
  }

  // The features drawn so far, in that order; and all features in their natural order.
  std::span<const std::int32_t> drawn() const { return std::span(features_).first(n_drawn_); }
  std::span<const std::int32_t> natural() const { return natural_; }

  // Restores the natural order, so that the next draws depend on their random numbers alone.
  void put_back() {
    while (n_drawn_ > 0) {
      --n_drawn_;
      std::swap(features_[n_drawn_], features_[swaps_[n_drawn_]]);
    }
  }

 private:
  std::vector<std::int32_t> natural_, features_;
  std::vector<std::uint32_t> swaps_;  // swaps_[k]: the position that was swapped with k
  std::size_t n_drawn_ = 0;
};

}  // namespace okforest
