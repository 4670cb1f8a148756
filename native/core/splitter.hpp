// Which splits of a node to try, and which of them wins.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "core/rules.hpp"
#include "core/views.hpp"

namespace okforest {

struct Node {
  std::int32_t id;
  std::int32_t begin, end;  // its rows, as a range of the tree's
  std::int32_t depth;
  std::uint64_t seed;
  double weight = 0.0;
  double count = 0.0;
  double variance = 0.0;  // total: its weight times the variance of its outputs
};

struct Split {
  std::int32_t feature = -1;
  double threshold = 0.0;
  double gain = -1.0;  // reduction of the total variance

  bool found() const { return feature >= 0; }
};

// Two gains that agree to kTie of themselves, or to kNoise of the node's total variance, are equal:
// they differ by rounding, which depends on the form of the outputs, the machine and the device.
inline constexpr double kTie = 1e-9;
inline constexpr double kNoise = 1e-12;

template <class T, class Scorer>
class Splitter {
 public:
  Splitter(const InputView<T>& X, Scorer& scorer, const Rules& rules, const Sample& sample,
           const std::atomic<bool>& stopped)
      : X_(X), scorer_(scorer), rules_(rules), sample_(sample), stopped_(stopped) {
    features_.resize(X.n_cols);
    std::iota(features_.begin(), features_.end(), 0);
    drawn_.reserve(X.n_cols);
    values_.reserve(sample.rows.size());
    order_.reserve(sample.rows.size());
    right_.reserve(sample.rows.size());
    norms_.reserve(sample.rows.size());
  }

  // The best split of the node that the scorer has entered. Features are visited in a random order,
  // at least max_features of them and until one can split the node; the first of equals wins.
  Split search(const Node& node, std::span<const std::int32_t> rows) {
    Rng rng(node.seed);
    Split best;
    const auto n_features = static_cast<std::uint32_t>(X_.n_cols);
    for (std::uint32_t visited = 0; visited < n_features && !stopped_; ++visited) {
      if (best.found() && static_cast<std::int32_t>(visited) >= rules_.max_features) break;
      const std::uint32_t pick = visited + rng.below(n_features - visited);
      std::swap(features_[visited], features_[pick]);
      drawn_.push_back(pick);
      if (rules_.split_kind == SplitKind::best) {
        try_every_threshold(features_[visited], node, rows, best);
      } else {
        try_random_threshold(features_[visited], node, rows, rng, best);
      }
      if (best.found() && rows.size() == 2) break;  // any other split would be its equal
    }
    // Back to the natural order, so that the next node's draws depend on its own seed alone.
    for (; !drawn_.empty(); drawn_.pop_back()) {
      std::swap(features_[drawn_.size() - 1], features_[drawn_.back()]);
    }
    return best;
  }

 private:
  struct Value {
    T x;
    std::int32_t row;
  };

  void try_every_threshold(std::int32_t feature, const Node& node,
                           std::span<const std::int32_t> rows, Split& best) {
    const auto n = rows.size();
    values_.resize(n);
    bool constant = true;
    for (std::size_t k = 0; k < n; ++k) {
      values_[k] = {X_(rows[k], feature), rows[k]};
      constant &= values_[k].x == values_[0].x;
    }
    if (constant) return;
    std::sort(values_.begin(), values_.end(),
              [](const Value& a, const Value& b) { return a.x < b.x; });
    order_.resize(n);
    for (std::size_t k = 0; k < n; ++k) order_[k] = values_[k].row;
    norms_.resize(n);
    scorer_.prefix_norms(order_, norms_);
    double weight = 0.0, count = 0.0;
    for (std::size_t k = 0; k + 1 < n; ++k) {
      weight += sample_.weight[order_[k]];
      count += sample_.count[order_[k]];
      if (values_[k].x < values_[k + 1].x) {
        offer(feature, norms_[k], weight, count, node, best,
              [&] { return halfway(values_[k].x, values_[k + 1].x); });
      }
    }
  }

  void try_random_threshold(std::int32_t feature, const Node& node,
                            std::span<const std::int32_t> rows, Rng& rng, Split& best) {
    values_.resize(rows.size());
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const T x = X_(rows[k], feature);
      values_[k] = {x, rows[k]};
      low = std::min(low, static_cast<double>(x));
      high = std::max(high, static_cast<double>(x));
    }
    if (low == high) return;
    const double u = rng.uniform();
    double threshold = (1.0 - u) * low + u * high;
    if (!(threshold >= low && threshold < high)) threshold = low;

    order_.clear();
    right_.clear();
    double weight = 0.0, count = 0.0;
    for (const Value& value : values_) {
      if (value.x <= threshold) {
        order_.push_back(value.row);
        weight += sample_.weight[value.row];
        count += sample_.count[value.row];
      } else {
        right_.push_back(value.row);
      }
    }
    // Around the node's mean the two sides' sums are opposite: the smaller side is enough.
    const auto& smaller = order_.size() <= right_.size() ? order_ : right_;
    offer(feature, scorer_.subset_norm(smaller), weight, count, node, best,
          [&] { return threshold; });
  }

  // Takes the split if it is allowed and beats the best so far. With s the left side's sum around
  // the node's mean, the reduction of the total variance is ||s||^2 W / (W_left W_right).
  template <class Threshold>
  void offer(std::int32_t feature, double norm, double left_weight, double left_count,
             const Node& node, Split& best, Threshold&& threshold) {
    if (left_count < rules_.min_samples_leaf) return;
    if (node.count - left_count < rules_.min_samples_leaf) return;
    const double gain = norm * node.weight / (left_weight * (node.weight - left_weight));
    if (best.found() && gain * (1.0 - kTie) <= best.gain + kNoise * node.variance) return;
    best = {feature, threshold(), gain};
  }

  // A threshold t with a <= t < b.
  static double halfway(double a, double b) {
    const double middle = a / 2 + b / 2;
    return middle >= a && middle < b ? middle : a;
  }

  const InputView<T> X_;
  Scorer& scorer_;
  const Rules& rules_;
  const Sample& sample_;
  const std::atomic<bool>& stopped_;
  std::vector<std::int32_t> features_;  // a permutation in use; the identity between searches
  std::vector<std::uint32_t> drawn_;    // the swaps that made it
  std::vector<Value> values_;
  std::vector<std::int32_t> order_, right_;
  std::vector<double> norms_;
};

}  // namespace okforest
