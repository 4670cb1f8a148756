// The search for the best split of a node.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "core/categories.hpp"
#include "core/feature_order.hpp"
#include "core/gain.hpp"
#include "core/inputs.hpp"
#include "core/orders.hpp"
#include "core/random.hpp"
#include "core/ranks.hpp"
#include "core/rules.hpp"

namespace okforest {

struct Node {
  std::int32_t id;
  std::int32_t begin, end;  // range of its rows in the tree's
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
  std::vector<std::uint64_t> subset{};  // of a categorical feature: the codes that go left, as bits
  double gain = -1.0;                   // reduction of the total variance

  bool found() const { return feature >= 0; }
};

// What is drawn for a feature depends on the node and the feature only: in a stream of the node,
// each feature has this many numbers to itself, more than the number of its categories.
inline constexpr std::uint64_t kCuts = 3;
inline constexpr std::uint64_t kDrawsOfFeature = 1 << 12;

// Features are swept together up to this number of features, and of their values in the node.
inline constexpr std::size_t kMaxSwept = 128;
inline constexpr std::size_t kSweptValues = 1 << 18;

template <class Inputs, class Scorer>
class Splitter {
 public:
  Splitter(const Inputs& X, Scorer& scorer, const Rules& rules,
           const Ranks<typename Inputs::Element>* ranks, const std::atomic<bool>& stopped)
      : X_(X),
        scorer_(scorer),
        rules_(rules),
        stopped_(stopped),
        any_category_(std::ranges::any_of(rules.n_categories, [](auto n) { return n > 0; })),
        features_(X.n_cols) {
    found_.resize(features_.size() + kWidth);
    if (ranks != nullptr) rank_sort_.emplace(*ranks);
  }

  // Begins a tree, on a sample that must outlive it.
  void begin(const Sample& sample) {
    sample_ = sample;
    buffer_.resize(sample.rows.size());
    order_.resize(sample.rows.size());
    others_.resize(sample.rows.size());
    sides_.resize(kWidth * (sample.rows.size() / 2 + 1) + Batch<T>::slack);
  }

  // Finds the best split of the node that the scorer has entered; `best` must be empty. Features
  // are visited in a random order: max_features of them, and more until one can split the node.
  // Among equal splits the first wins.
  void search(const Node& node, std::span<const std::int32_t> rows, Split& best) {
    Rng rng(node.seed);
    cuts_ = Rng(derive(node.seed, kCuts));
    best_ = &best;
    node_ = &node;
    if (rank_sort_) rank_sort_->enter(rows);
    gain_ = {node.weight, node.count, node.variance, at_least(rules_.min_samples_leaf)};
    const std::size_t most =
        std::min(static_cast<std::size_t>(rules_.max_features), features_.size());
    // All splits of two rows are equal: the first is enough.
    const bool two = rows.size() == 2;
    const std::size_t n_planned = two ? std::min<std::size_t>(1, most) : most;
    const bool all = n_planned == features_.size();
    if (all) score_ahead(rows, features_.natural());
    if (all && all_scored()) {
      take_best_of_all(rng);
    } else {
      while (features_.n_drawn() < n_planned) features_.draw(rng);
      std::size_t visited = 0;
      if (!all && !two) {
        score_ahead(rows, features_.drawn());
        visited = take_best_of_drawn();
      }
      for (; visited < features_.size() && !stopped_; ++visited) {
        if (best_->found() && visited >= n_planned) break;
        feature_ = visited < n_planned ? features_.drawn()[visited] : features_.draw(rng);
        // Slots are in the order of all features, or of those drawn.
        slot_ = all ? static_cast<std::size_t>(feature_) : visited;
        if (!two && visited < n_planned && found_.gain[slot_] != kUnknown) {
          take_found();
        } else {
          try_feature(rows);
        }
      }
    }
    features_.put_back();
  }

 private:
  using T = typename Inputs::Element;
  static constexpr std::size_t kWidth = Batch<T>::width;

  // The best cuts of features that were scored ahead of their turn, one per slot.
  struct Found {
    std::vector<double> gain;  // or kNoGain, or kUnknown
    std::vector<double> threshold, left_weight;
    std::vector<char> missing_left;  // of sweeps only
    Range range;                     // of the gains

    void resize(std::size_t n) {
      gain.resize(n);
      threshold.resize(n);
      left_weight.resize(n);
      missing_left.resize(n);
    }
  };

  // A split of the node into two sides.
  struct Sides {
    double gain, left_weight;
    bool missing_left;
  };

  Rng draws_of(std::int32_t feature) const {
    return cuts_.ahead(static_cast<std::uint64_t>(feature) * kDrawsOfFeature);
  }

  // Finds the best cuts of numeric features, several at a time.
  void score_ahead(std::span<const std::int32_t> rows, std::span<const std::int32_t> features) {
    if (rules_.split_kind == SplitKind::best) {
      sweep(rows, features);
    } else {
      draw_cuts(rows, features);
    }
  }

  // Whether all features have been scored.
  bool all_scored() {
    found_.range = range_of(std::span(found_.gain).first(features_.size()));
    return !stopped_ && !(found_.range.least < kNoGain);
  }

  void draw_cuts(std::span<const std::int32_t> rows, std::span<const std::int32_t> features) {
    const bool small = rows.size() <= kSmallNode && scorer_.row_gram(rows, gram_);
    if (small) {
      for (std::size_t k = 0; k < rows.size(); ++k) {
        weight_[k] = sample_.weight[rows[k]];
        count_[k] = sample_.count[rows[k]];
      }
    }
    for (std::size_t slot = 0; slot < features.size() && !stopped_; slot += kWidth) {
      const auto some = features.subspan(slot, std::min(kWidth, features.size() - slot));
      batch_.load(X_, some, rows);
      batch_.draw_thresholds(cuts_, kDrawsOfFeature, some);
      std::copy_n(batch_.thresholds(), kWidth, &found_.threshold[slot]);
      if (small) {
        typename Batch<T>::Scores scores;
        batch_.score(gram_, weight_, count_, gain_, scores);
        std::copy_n(scores.gain, kWidth, &found_.gain[slot]);
        std::copy_n(scores.left_weight, kWidth, &found_.left_weight[slot]);
        for (std::size_t c = 0; batch_.any_missing() && c < some.size(); ++c) {
          if (batch_.has_missing(c)) found_.gain[slot + c] = kUnknown;
        }
      } else {
        score_sides(slot, some.size(), rows.size());
      }
    }
    for (std::size_t slot = 0; any_category_ && slot < features.size(); ++slot) {
      if (rules_.n_categories[features[slot]] > 0) found_.gain[slot] = kUnknown;
    }
  }

  void score_sides(std::size_t slot, std::size_t n_features, std::size_t n_rows) {
    batch_.cut();
    std::span<const std::int32_t> sides[kWidth];
    double weights[kWidth], norms[kWidth];
    std::size_t place[kWidth];
    bool is_left[kWidth];
    std::size_t n = 0;
    std::int32_t* out = sides_.data();
    for (std::size_t c = 0; c < n_features; ++c) {
      found_.gain[slot + c] = batch_.has_missing(c) ? kUnknown : kNoGain;
      if (batch_.has_missing(c) || !(batch_.low(c) < batch_.high(c))) continue;
      // Around the node's mean, the sums of the two sides are opposite: the smaller side is enough.
      is_left[n] = 2 * batch_.n_left(c) <= n_rows;
      sides[n] = {out, batch_.list(c, is_left[n], out)};
      weights[n] = sample_.weight_of(sides[n]);
      out += sides[n].size();
      place[n++] = slot + c;
    }
    scorer_.subset_norms(std::span(sides).first(n), weights, norms);
    for (std::size_t k = 0; k < n; ++k) {
      const double weight = is_left[k] ? weights[k] : node_->weight - weights[k];
      found_.gain[place[k]] = gain_(norms[k], weight, left_count(sides[k], is_left[k]));
      found_.left_weight[place[k]] = weight;
    }
  }

  double left_count(std::span<const std::int32_t> side, bool is_left) const {
    const double count = sample_.count_of(side);
    return is_left ? count : node_->count - count;
  }

  // Finds the best of all cuts of numeric features, several features at a time.
  void sweep(std::span<const std::int32_t> rows, std::span<const std::int32_t> features) {
    const std::size_t most = std::clamp<std::size_t>(kSweptValues / rows.size(), 1, kMaxSwept);
    for (std::size_t slot = 0; slot < features.size() && !stopped_;) {
      orders_.begin((most + 1) * rows.size());
      for (; orders_.size() < most && slot < features.size(); ++slot) {
        feature_ = features[slot];
        const bool numeric = rules_.n_categories[feature_] == 0;
        found_.gain[slot] = numeric ? kNoGain : kUnknown;
        if (!numeric) continue;
        fetch_sorted(rows);
        orders_.add(slot, values_, missing_);
      }
      orders_.score(scorer_);
      for (const Order& order : orders_) {
        const Cut cut = orders_.best_cut(order, sample_, gain_);
        if (cut.gain < 0.0 || !gain_.beats(cut.gain, found_.gain[order.slot])) continue;
        found_.gain[order.slot] = cut.gain;
        found_.threshold[order.slot] = cut.threshold;
        found_.missing_left[order.slot] =
            order.any_missing ? order.missing_left : larger_left(cut.left_weight);
      }
    }
  }

  // Takes the best of all cuts. The order of the features only matters among equals.
  void take_best_of_all(Rng& rng) {
    const auto gains = std::span(found_.gain).first(features_.size());
    if (!(found_.range.most >= 0.0)) return;
    const double least = gain_.least_equal_of(found_.range.most);
    if (count_from(least, gains) > 1) {
      do {
        slot_ = static_cast<std::size_t>(features_.draw(rng));
      } while (gains[slot_] < least);
    } else {
      slot_ = static_cast<std::size_t>(std::ranges::find(gains, found_.range.most) - gains.begin());
    }
    feature_ = static_cast<std::int32_t>(slot_);
    take_found();
  }

  // If all features drawn have been scored, takes the best of their cuts, the first among equals,
  // and returns their number. Otherwise returns zero.
  std::size_t take_best_of_drawn() {
    const auto gains = std::span(found_.gain).first(features_.n_drawn());
    double least = 0.0, most = kNoGain;
    for (const double gain : gains) {
      least = gain < least ? gain : least;
      most = gain > most ? gain : most;
    }
    if (stopped_ || least < kNoGain) return 0;
    if (most >= 0.0) {
      least = gain_.least_equal_of(most);
      slot_ = 0;
      while (gains[slot_] < least) ++slot_;
      feature_ = features_.drawn()[slot_];
      take_found();
    }
    return gains.size();
  }

  // Takes the cut of the current feature, from the current slot.
  void take_found() {
    const bool missing_left = rules_.split_kind == SplitKind::best
                                  ? found_.missing_left[slot_] != 0
                                  : larger_left(found_.left_weight[slot_]);
    take(found_.gain[slot_], missing_left, found_.threshold[slot_]);
  }

  void try_feature(std::span<const std::int32_t> rows) {
    const std::int32_t n_categories = rules_.n_categories[feature_];
    if (n_categories == 0 && rules_.split_kind == SplitKind::best) {
      slot_ = 0;
      sweep(rows, {&feature_, 1});
      return take_found();
    }
    Rng rng = draws_of(feature_);
    fetch(rows, n_categories);
    if (values_.empty()) return;
    if (n_categories == 0) {
      if (low_ < high_ || !missing_.empty()) try_random_threshold(rng);
      return;
    }
    groups_.assign(values_, n_categories);
    if (groups_.size() + !missing_.empty() < 2) return;
    if (rules_.split_kind == SplitKind::random) {
      try_random_subset(rng);
    } else if (groups_.size() + !missing_.empty() <= kMaxExhaustive) {
      try_every_subset();
    } else {
      try_ordered_subsets();
    }
  }

  // Gathers the feature's values in the node, separates missing ones, and finds their range.
  void fetch(std::span<const std::int32_t> rows, std::int32_t n_categories) {
    values_ = std::span(buffer_).first(rows.size());
    X_.gather(feature_, rows, values_.data());
    missing_.clear();
    missing_weight_ = 0.0;
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
      } else {
        values_[n_present++] = values_[k];
      }
    }
    values_ = values_.first(n_present);
  }

  // The same for a numeric feature, sorting the values instead of finding their range.
  void fetch_sorted(std::span<const std::int32_t> rows) {
    if (!rank_sort_) {
      fetch(rows, 0);
      return sort_values();
    }
    (*rank_sort_)(feature_, buffer_.data());
    std::size_t n_present = rows.size();
    missing_.clear();
    while (n_present > 0 && std::isnan(buffer_[n_present - 1].x)) {
      missing_.push_back(buffer_[--n_present].row);
    }
    values_ = std::span(buffer_).first(n_present);
  }

  void sort_values() {
    std::sort(values_.begin(), values_.end(),
              [](const auto& a, const auto& b) { return a.x < b.x; });
  }

  void try_random_threshold(Rng& rng) {
    const double threshold = low_ < high_ ? uniform_between(low_, high_, rng.uniform())
                                          : std::numeric_limits<double>::infinity();
    const Sides sides = divide(rng, [&](T x) { return x <= threshold; });
    take(sides.gain, side_of_missing(sides.left_weight, sides.missing_left), threshold);
  }

  // Each category goes to a random side. If all go to the same side, one of them is moved.
  void try_random_subset(Rng& rng) {
    const std::size_t n = groups_.size();
    chosen_.assign(n, 0);
    std::size_t n_left = 0;
    for (auto& side : chosen_) n_left += side = static_cast<char>(rng.below(2));
    const bool one_sided = n_left == 0 || n_left == n;
    if (one_sided && n > 1) chosen_[rng.below(static_cast<std::uint32_t>(n))] ^= 1;
    const Sides sides = divide(rng, [&](T x) { return chosen_[groups_.of(x)] != 0; });
    take_subset(sides.gain, sides.left_weight, sides.missing_left,
                [&](std::size_t g) { return chosen_[g] != 0; });
  }

  // Scores one split, given by which present values go left. Missing values go to a random side,
  // with probability proportional to its present weight.
  template <class Left>
  Sides divide(Rng& rng, Left&& left) {
    // Without branches: each row is written to both sides, and kept on one.
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
      missing_left = n_left == 0 || (n_right > 0 && u < sample_.weight_of(present));
      std::size_t& n_side = missing_left ? n_left : n_right;
      auto& side = missing_left ? order_ : others_;
      std::copy(missing_.begin(), missing_.end(), side.begin() + n_side);
      n_side += missing_.size();
    }
    const bool is_left = n_left <= n_right;
    const std::span<const std::int32_t> side =
        is_left ? std::span(order_).first(n_left) : std::span(others_).first(n_right);
    const double weight = sample_.weight_of(side);
    const double left_weight = is_left ? weight : node_->weight - weight;
    // Splitting two rows leaves no variance.
    double norm = node_->variance * weight * (node_->weight - weight) / node_->weight;
    const bool known = n_left + n_right == 2 && rules_.criterion == Criterion::variance;
    if (!known) scorer_.subset_norms({&side, 1}, &weight, &norm);
    return {gain_(norm, left_weight, left_count(side, is_left)), left_weight, missing_left};
  }

  // Tries every subset of the categories, with missing values as one more category. In the order of
  // a Gray code, each subset differs from the previous one in a single category. The first category
  // always goes left.
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
      take_subset(gain_(norm, weight, count), weight, missing_left,
                  [&](std::size_t g) { return chosen_[g] != 0; });
    }
  }

  // With many categories, sorts them along the first principal direction of their means and tries
  // the cuts of this order. For scalar outputs, these include the best subset.
  void try_ordered_subsets() {
    groups_.measure(scorer_, sample_, values_, {});
    const std::vector<std::int32_t> rank = groups_.principal_order();
    for (auto& value : values_) value.x = static_cast<T>(rank[groups_.of(value.x)]);
    sort_values();
    orders_.begin(2 * (values_.size() + missing_.size()));
    orders_.add(0, values_, missing_);
    orders_.score(scorer_);
    for (const Order& order : orders_) {
      const Cut cut = orders_.best_cut(order, sample_, gain_);
      take_subset(cut.gain, cut.left_weight, order.missing_left,
                  [&](std::size_t g) { return rank[g] <= cut.threshold; });
    }
  }

  // Takes a split of the current feature if it is allowed and beats the best so far. The caller
  // adds the subset of categories.
  bool take(double gain, bool missing_left, double threshold = 0.0) {
    if (gain < 0.0 || !gain_.beats(gain, best_->gain)) return false;
    best_->feature = feature_;
    best_->threshold = threshold;
    best_->missing_left = missing_left;
    best_->subset.clear();
    best_->gain = gain;
    return true;
  }

  // Takes a split of the current, categorical feature that sends the chosen groups left.
  template <class Chosen>
  void take_subset(double gain, double left_weight, bool missing_left, Chosen&& chosen) {
    if (!take(gain, side_of_missing(left_weight, missing_left))) return;
    auto& subset = best_->subset;
    subset.assign(n_words(rules_.n_categories[feature_]), 0);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (chosen(g)) subset[groups_.code(g) / 64] |= 1ULL << (groups_.code(g) % 64);
    }
    if (larger_left(left_weight)) groups_.add_absent(subset);
  }

  bool larger_left(double left_weight) const { return left_weight > node_->weight - left_weight; }

  // Values that did not occur in training go to the larger side.
  bool side_of_missing(double left_weight, bool missing_left) const {
    return missing_.empty() ? larger_left(left_weight) : missing_left;
  }

  const Inputs& X_;
  Scorer& scorer_;
  const Rules& rules_;
  const std::atomic<bool>& stopped_;
  const bool any_category_;
  FeatureOrder features_;

  Sample sample_{};

  // The current search: its node, its current feature, and the best split so far.
  const Node* node_ = nullptr;
  Gain gain_{};
  Rng cuts_{0};
  std::int32_t feature_ = -1;
  Split* best_ = nullptr;
  std::span<Value<T>> values_;         // of the feature, where present
  T low_ = 0, high_ = 0;               // their range
  std::vector<std::int32_t> missing_;  // rows where it is missing
  double missing_weight_ = 0.0;
  Groups groups_;  // of a categorical feature

  // Several features at a time:
  Found found_;
  std::size_t slot_ = 0;  // of the current feature
  Batch<T> batch_;        // random cuts
  double gram_[kSmallNode * kSmallNode], weight_[kSmallNode], count_[kSmallNode];
  std::vector<std::int32_t> sides_;       // the smaller sides of random cuts
  Orders<T> orders_;                      // of a sweep
  std::optional<RankSort<T>> rank_sort_;  // empty: values are sorted in every node

  // Scratch memory, as long as the tree's sample.
  std::vector<Value<T>> buffer_;
  std::vector<std::int32_t> order_, others_;
  std::vector<double> reach_;
  std::vector<char> chosen_;
};

}  // namespace okforest
