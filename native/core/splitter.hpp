// Which splits of a node to try, and which of them wins.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/categories.hpp"
#include "core/inputs.hpp"
#include "core/random.hpp"
#include "core/rules.hpp"

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
  bool missing_left = false;
  std::vector<std::uint64_t> subset;  // of a categorical feature: the codes that go left, as bits
  double gain = -1.0;                 // reduction of the total variance

  bool found() const { return feature >= 0; }
};

// Two gains that agree to kTie of themselves, or to kNoise of the node's total variance, are equal:
// they differ by rounding, which depends on the form of the outputs, the machine and the device.
inline constexpr double kTie = 1e-9;
inline constexpr double kNoise = 1e-12;

// What is drawn for a feature depends on the node and the feature alone: it has numbers of its own
// (more than there can be categories) in a stream of the node's.
inline constexpr std::uint64_t kCuts = 3;
inline constexpr std::uint64_t kDrawsOfFeature = 1 << 12;

template <class Inputs, class Scorer>
class Splitter {
 public:
  Splitter(const Inputs& X, Scorer& scorer, const Rules& rules, const Sample& sample,
           const std::atomic<bool>& stopped)
      : X_(X), scorer_(scorer), rules_(rules), sample_(sample), stopped_(stopped) {
    features_.resize(X.n_cols);
    std::iota(features_.begin(), features_.end(), 0);
    drawn_.reserve(X.n_cols);
    buffer_.resize(sample.rows.size());
    order_.resize(sample.rows.size());
    others_.resize(sample.rows.size());
    norms_.resize(sample.rows.size());
  }

  // The best split of the node that the scorer has entered. Features are visited in a random order,
  // at least max_features of them and until one can split the node; the first of equals wins.
  Split search(const Node& node, std::span<const std::int32_t> rows) {
    Rng rng(node.seed);
    cuts_ = Rng(derive(node.seed, kCuts));
    best_ = {};
    node_ = &node;
    const auto n_features = static_cast<std::uint32_t>(X_.n_cols);
    for (std::uint32_t visited = 0; visited < n_features && !stopped_; ++visited) {
      if (best_.found() && static_cast<std::int32_t>(visited) >= rules_.max_features) break;
      const std::uint32_t pick = visited + rng.below(n_features - visited);
      std::swap(features_[visited], features_[pick]);
      drawn_.push_back(pick);
      try_feature(features_[visited], rows);
      if (best_.found() && rows.size() == 2) break;  // any other split would be its equal
    }
    // Back to the natural order, so that the next node's draws depend on its own seed alone.
    for (; !drawn_.empty(); drawn_.pop_back()) {
      std::swap(features_[drawn_.size() - 1], features_[drawn_.back()]);
    }
    return std::move(best_);
  }

 private:
  using T = typename Inputs::Element;

  void try_feature(std::int32_t feature, std::span<const std::int32_t> rows) {
    feature_ = feature;
    Rng rng = cuts_.ahead(static_cast<std::uint64_t>(feature) * kDrawsOfFeature);
    const std::int32_t n_categories = rules_.n_categories[feature];
    fetch(rows, n_categories);
    if (values_.empty()) return;
    if (n_categories == 0) {
      if (low_ == high_ && missing_.empty()) return;
      if (rules_.split_kind == SplitKind::best) {
        sort_values();
        try_every_cut([&](std::size_t k) { return Split{feature_, cut_after(k)}; });
      } else {
        try_random_threshold(rng);
      }
      return;
    }
    groups_.assign(values_, n_categories);
    if (groups_.size() + !missing_.empty() < 2) return;
    if (rules_.split_kind == SplitKind::random) {
      try_random_subset(rng);
    } else if (groups_.size() + !missing_.empty() <= kMostExhaustive) {
      try_every_subset();
    } else {
      try_ordered_subsets();
    }
  }

  // Gathers the feature's values of the node, the missing ones apart, and their range.
  void fetch(std::span<const std::int32_t> rows, std::int32_t n_categories) {
    values_ = std::span(buffer_).first(rows.size());
    X_.gather(feature_, rows, values_.data());
    missing_.clear();
    missing_weight_ = missing_count_ = 0.0;
    low_ = std::numeric_limits<T>::infinity();
    high_ = -low_;
    bool complete = n_categories == 0;
    for (const auto& value : values_) {
      low_ = value.x < low_ ? value.x : low_;
      high_ = value.x > high_ ? value.x : high_;
      complete &= value.x == value.x;
    }
    if (complete) return;
    const auto is_missing = [&](T x) {
      return std::isnan(x) || (n_categories > 0 && !(x >= 0 && x < static_cast<T>(n_categories)));
    };
    std::size_t n_present = 0;
    for (std::size_t k = 0; k < values_.size(); ++k) {
      if (is_missing(values_[k].x)) {
        missing_.push_back(values_[k].row);
        missing_weight_ += sample_.weight[values_[k].row];
        missing_count_ += sample_.count[values_[k].row];
      } else {
        values_[n_present++] = values_[k];
      }
    }
    values_ = values_.first(n_present);
  }

  void sort_values() {
    std::sort(values_.begin(), values_.end(),
              [](const auto& a, const auto& b) { return a.x < b.x; });
  }

  // Tries the cuts between different values, which are sorted, with missing values on the right
  // (and alone there) and on the left. `make(k)` is the split that sends values 0 .. k left.
  template <class Make>
  void try_every_cut(Make&& make) {
    const std::size_t n = values_.size();
    const std::size_t n_missing = missing_.size();
    for (const bool missing_left : {false, true}) {
      if (missing_left && n_missing == 0) break;
      const std::size_t shift = missing_left ? n_missing : 0;
      std::copy_n(missing_.begin(), shift, order_.begin());
      for (std::size_t k = 0; k < n; ++k) order_[shift + k] = values_[k].row;
      scorer_.prefix_norms(std::span(order_).first(shift + n), std::span(norms_).first(shift + n));
      double weight = missing_left ? missing_weight_ : 0.0;
      double count = missing_left ? missing_count_ : 0.0;
      for (std::size_t k = 0; k < n; ++k) {
        weight += sample_.weight[values_[k].row];
        count += sample_.count[values_[k].row];
        const bool last = k + 1 == n;
        if (last ? missing_left || n_missing == 0 : !(values_[k].x < values_[k + 1].x)) continue;
        offer(norms_[k + shift], weight, count, missing_left, [&] { return make(k); });
      }
    }
  }

  void try_random_threshold(Rng& rng) {
    const double low = low_, high = high_;
    double threshold = std::numeric_limits<double>::infinity();
    if (low < high) {
      const double u = rng.uniform();
      threshold = (1.0 - u) * low + u * high;
      if (!(threshold >= low && threshold < high)) threshold = low;
    }
    try_sides(rng, [&](T x) { return x <= threshold; }, [&] { return Split{feature_, threshold}; });
  }

  // Each category's side is a coin; if all fall alike, one of them goes to the other side.
  void try_random_subset(Rng& rng) {
    const std::size_t n = groups_.size();
    chosen_.assign(n, 0);
    std::size_t n_left = 0;
    for (auto& side : chosen_) n_left += side = static_cast<char>(rng.below(2));
    const bool alike = n_left == 0 || n_left == n;
    if (alike && n > 1) chosen_[rng.below(static_cast<std::uint32_t>(n))] ^= 1;
    try_sides(
        rng, [&](T x) { return chosen_[groups_.of(x)] != 0; },
        [&] { return subset_split([&](std::size_t g) { return chosen_[g] != 0; }); });
  }

  // Tries one split, given by which present values go left. Missing values go to a random side, the
  // chance being its part of the present weight: one that knows no better disturbs the least.
  template <class Left, class Make>
  void try_sides(Rng& rng, Left&& left, Make&& make) {
    // Written to both sides, and kept on one: no branch to guess.
    std::size_t n_left = 0, n_right = 0;
    for (const auto& value : values_) {
      const bool goes_left = left(value.x);
      order_[n_left] = others_[n_right] = value.row;
      n_left += goes_left;
      n_right += !goes_left;
    }
    bool missing_left = false;
    if (!missing_.empty()) {
      const double u = rng.uniform() * (node_->weight - missing_weight_);
      const auto present = std::span(order_).first(n_left);
      missing_left = n_left == 0 || (n_right > 0 && u < total(present, sample_.weight));
      std::size_t& n_side = missing_left ? n_left : n_right;
      auto& side = missing_left ? order_ : others_;
      std::copy(missing_.begin(), missing_.end(), side.begin() + n_side);
      n_side += missing_.size();
    }
    // Around the node's mean the two sides' sums are opposite: the smaller side is enough.
    const bool left_is_smaller = n_left <= n_right;
    const std::span<const std::int32_t> smaller =
        left_is_smaller ? std::span(order_).first(n_left) : std::span(others_).first(n_right);
    double weight = total(smaller, sample_.weight), count = total(smaller, sample_.count);
    if (!left_is_smaller) {
      weight = node_->weight - weight;
      count = node_->count - count;
    }
    offer(scorer_.subset_norm(smaller), weight, count, missing_left, make);
  }

  static double total(std::span<const std::int32_t> rows, std::span<const double> of) {
    double sum = 0.0;
    for (const auto row : rows) sum += of[row];
    return sum;
  }

  // Tries every division of the categories, missing values being one more, by a Gray code: each
  // differs from the one before in a single category. The first category stays on the left.
  void try_every_subset() {
    const std::size_t n_present = groups_.size();
    const std::size_t n = n_present + !missing_.empty();
    groups_.measure(scorer_, sample_, values_, missing_);
    const std::vector<double>& gram = groups_.gram();
    chosen_.assign(n, 0);
    reach_.assign(n, 0.0);  // <sum of a category, sum of the left side>
    double norm = 0.0, weight = 0.0, count = 0.0;
    const auto flip = [&](std::size_t g) {
      const double sign = chosen_[g] ? -1.0 : 1.0;
      norm += 2.0 * sign * reach_[g] + gram[g * n + g];
      weight += sign * groups_.weight(g);
      count += sign * groups_.count(g);
      for (std::size_t h = 0; h < n; ++h) reach_[h] += sign * gram[g * n + h];
      chosen_[g] ^= 1;
    };
    flip(0);
    const std::uint32_t n_subsets = 1u << (n - 1);
    for (std::uint32_t code = 0; code < n_subsets; ++code) {
      if (code > 0) flip(1 + static_cast<std::size_t>(std::countr_zero(code)));
      if (std::count(chosen_.begin(), chosen_.end(), 0) == 0) continue;
      const bool missing_left = !missing_.empty() && chosen_[n_present] != 0;
      offer(std::max(norm, 0.0), weight, count, missing_left,
            [&] { return subset_split([&](std::size_t g) { return chosen_[g] != 0; }); });
    }
  }

  // With many categories, orders them along the first principal direction of their means and tries
  // the cuts of that order, which hold the best division when outputs are scalar.
  void try_ordered_subsets() {
    groups_.measure(scorer_, sample_, values_, {});
    const std::vector<std::int32_t> rank = groups_.principal_order();
    for (auto& value : values_) value.x = static_cast<T>(rank[groups_.of(value.x)]);
    sort_values();
    try_every_cut([&](std::size_t k) {
      const auto last = static_cast<std::int32_t>(values_[k].x);
      return subset_split([&](std::size_t g) { return rank[g] <= last; });
    });
  }

  // A split that sends the categories left that are in the node and chosen.
  template <class Chosen>
  Split subset_split(Chosen&& chosen) const {
    Split split{feature_};
    split.subset.assign(n_words(rules_.n_categories[feature_]), 0);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (chosen(g)) split.subset[groups_.code(g) / 64] |= 1ULL << (groups_.code(g) % 64);
    }
    return split;
  }

  // Takes the split if it is allowed and beats the best so far. With s the left side's sum around
  // the node's mean, the reduction of the total variance is ||s||^2 W / (W_left W_right).
  template <class Make>
  void offer(double norm, double left_weight, double left_count, bool missing_left, Make&& make) {
    if (fewer(left_count, rules_.min_samples_leaf)) return;
    if (fewer(node_->count - left_count, rules_.min_samples_leaf)) return;
    const double right_weight = node_->weight - left_weight;
    const double gain = norm * node_->weight / (left_weight * right_weight);
    if (best_.found() && gain * (1.0 - kTie) <= best_.gain + kNoise * node_->variance) return;
    best_ = make();
    best_.gain = gain;
    // What training did not show goes with the larger side.
    const bool larger_left = left_weight > right_weight;
    best_.missing_left = missing_.empty() ? larger_left : missing_left;
    if (larger_left && !best_.subset.empty()) groups_.add_absent(best_.subset);
  }

  // A threshold t with x_k <= t < x_(k+1); infinite after the last value.
  double cut_after(std::size_t k) const {
    if (k + 1 == values_.size()) return std::numeric_limits<double>::infinity();
    const double a = values_[k].x, b = values_[k + 1].x;
    const double middle = a / 2 + b / 2;
    return middle >= a && middle < b ? middle : a;
  }

  const Inputs& X_;
  Scorer& scorer_;
  const Rules& rules_;
  const Sample& sample_;
  const std::atomic<bool>& stopped_;
  std::vector<std::int32_t> features_;  // a permutation in use; the identity between searches
  std::vector<std::uint32_t> drawn_;    // the swaps that made it

  // The search under way: its node, the feature it is at, and the best split so far.
  const Node* node_ = nullptr;
  Rng cuts_{0};
  std::int32_t feature_ = -1;
  Split best_;
  std::span<Value<T>> values_;         // of the feature, where present
  T low_ = 0, high_ = 0;               // their range
  std::vector<std::int32_t> missing_;  // rows where it is missing
  double missing_weight_ = 0.0, missing_count_ = 0.0;
  Groups groups_;  // of a categorical feature

  // Scratch, of the size of the tree's sample.
  std::vector<Value<T>> buffer_;
  std::vector<std::int32_t> order_, others_;
  std::vector<double> norms_, reach_;
  std::vector<char> chosen_;
};

}  // namespace okforest
