// All splits of one feature, with their exact gains.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "core/categories.hpp"
#include "core/inputs.hpp"
#include "core/random.hpp"
#include "core/ranks.hpp"
#include "core/rules.hpp"
#include "core/scorer.hpp"
#include "core/sweep.hpp"

namespace okforest {

// A split of some feature.
struct Option {
  double gain = kNoGain;  // reduction of the total variance
  double left_weight = 0.0;
  bool missing_left = false;
  double threshold = 0.0;
  Rows left{}, right{};  // the two sides, if they were listed; until the next search
};

struct Split : Option {
  std::int32_t feature = -1;
  std::vector<std::uint64_t> subset{};  // of a categorical feature: the codes that go left, as bits

  bool found() const { return feature >= 0; }
};

// A search for the split of a node.
template <class Frame>
struct Search {
  const Node& node;
  Rows rows;
  const Frame& frame;
  const Sample& sample;
  Gain gain;
  Rng cuts;     // random numbers for thresholds and subsets
  bool scored;  // whether gains matter: not if any split of the first feature will do

  // What is drawn for a feature depends on the node and the feature only: in a stream of the node,
  // each feature has this many numbers to itself. With more categories, those of the next feature
  // are used again.
  static constexpr std::uint64_t kDrawsOfFeature = 1 << 12;
  Rng draws_of(std::int32_t feature) const {
    return cuts.ahead(static_cast<std::uint64_t>(feature) * kDrawsOfFeature);
  }

  // Sides that differ by rounding errors are equal.
  bool larger_left(double left_weight) const {
    return left_weight - (node.weight - left_weight) > kTie * node.weight;
  }
};

template <class Inputs, Scorer S>
class FeatureSplits {
 public:
  using Element = typename Inputs::Element;
  using NodeSearch = Search<typename S::Frame>;

  FeatureSplits(const Inputs& X, S& scorer, const Rules& rules, Ranks<Inputs>* ranks)
      : X_(X), scorer_(scorer), rules_(rules) {
    if (ranks != nullptr) rank_sort_.emplace(*ranks);
  }

  void begin(const Sample& sample) {
    buffer_.resize(sample.rows.size());
    left_.resize(sample.rows.size());
    right_.resize(sample.rows.size());
  }

  // Begins a node.
  void enter(Rows rows) { by_rank_ = rank_sort_ && rank_sort_->enter(rows); }

  // Whether a feature is not constant in some rows.
  bool varies(Rows rows, std::int32_t feature) {
    constexpr std::size_t few = 32;  // which tell it most often
    if (rows.size() > few && varies(rows.first(few), feature)) return true;
    fetch(rows, feature);
    const auto differs = [&](const auto& value) { return value.x != values_.front().x; };
    return !values_.empty() && (!missing_.empty() || std::ranges::any_of(values_, differs));
  }

  // The largest gain of a feature, or kNoGain.
  double best(const NodeSearch& search, std::int32_t feature) {
    double most = kNoGain;
    visit(search, feature, [&](const Option& option, const auto&) {
      most = std::max(most, option.gain);
      return false;
    });
    return most;
  }

  // Takes the first split of a feature that has at least this gain.
  void take(const NodeSearch& search, std::int32_t feature, double least, Split& split) {
    visit(search, feature, [&](const Option& option, const auto& chosen) {
      if (option.gain < 0.0 || option.gain < least) return false;
      const std::int32_t n_categories = rules_.n_categories[feature];
      static_cast<Option&>(split) = option;
      split.feature = feature;
      if (n_categories == 0) return true;
      split.threshold = 0.0;
      split.subset.assign(static_cast<std::size_t>(n_words(n_categories)), 0);
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (chosen(g)) split.subset[groups_.code(g) / 64] |= 1ULL << (groups_.code(g) % 64);
      }
      if (search.larger_left(option.left_weight)) groups_.add_absent(split.subset);
      return true;
    });
  }

  // The sorted values of a numeric feature, and the rows where it is missing.
  struct Sorted {
    std::span<const Value<Element>> values;
    Rows missing;
  };
  Sorted sorted(Rows rows, std::int32_t feature) {
    if (!by_rank_) {
      fetch(rows, feature);
      sort_values();
      return {values_, missing_};
    }
    (*rank_sort_)(feature, buffer_.data());
    std::size_t n_present = rows.size();
    missing_.clear();
    while (n_present > 0 && std::isnan(buffer_[n_present - 1].x)) {
      missing_.push_back(buffer_[--n_present].row);
    }
    values_ = std::span(buffer_).first(n_present);
    return {values_, missing_};
  }

 private:
  // Calls f(option, chosen) for each split of a feature in a fixed order, until it returns true.
  // chosen(g) tells whether group g of a categorical feature goes left.
  template <class F>
  void visit(const NodeSearch& search, std::int32_t feature, F&& f) {
    const std::int32_t n_categories = rules_.n_categories[feature];
    if (n_categories == 0 && rules_.split_kind == SplitKind::best) {
      sorted(search.rows, feature);
      return visit_cuts(search, f, [](std::size_t, double) { return false; });
    }
    Rng rng = search.draws_of(feature);
    fetch(search.rows, feature);
    if (values_.empty()) return;
    if (n_categories == 0) {
      if (low_ < high_ || !missing_.empty()) visit_threshold(search, rng, f);
      return;
    }
    groups_.assign(values_, n_categories);
    const std::size_t n_groups = groups_.size() + !missing_.empty();
    if (n_groups < 2) return;
    if (rules_.split_kind == SplitKind::random) {
      visit_random_subset(search, rng, f);
    } else if (n_groups <= kMaxExhaustive) {
      visit_every_subset(search, f);
    } else {
      visit_ordered_subsets(search, f);
    }
  }

  // Every cut of the feature's values, which are sorted. subset(g, threshold) tells whether group g
  // goes left.
  template <class F, class Subset>
  void visit_cuts(const NodeSearch& search, F&& f, Subset&& subset) {
    sweep_.begin(search.sample, search.gain, 2 * search.rows.size());
    sweep_.add(0, values_, missing_);
    sweep_.score([&](std::span<const Prefixes> lists, double* norms) {
      return scorer_.prefix_norms(search.node, search.rows, search.frame, lists, true, norms);
    });
    bool done = false;
    for (const Listing& listing : sweep_) {
      sweep_.for_cuts(listing, [&](const Cut& cut) {
        const bool missing_left =
            listing.any_missing ? listing.missing_left : search.larger_left(cut.left_weight);
        const Option option{cut.gain, cut.left_weight, missing_left, cut.threshold};
        return done = f(option, [&](std::size_t g) { return subset(g, cut.threshold); });
      });
      if (done) return;
    }
  }

  // Gathers the feature's values in the node, separates missing ones, and finds their range.
  void fetch(Rows rows, std::int32_t feature) {
    const std::int32_t n_categories = rules_.n_categories[feature];
    values_ = std::span(buffer_).first(rows.size());
    X_.gather(feature, rows, values_.data());
    missing_.clear();
    low_ = std::numeric_limits<Element>::infinity();
    high_ = -low_;
    bool complete = n_categories == 0;
    for (const auto& value : values_) {
      low_ = value.x < low_ ? value.x : low_;
      high_ = value.x > high_ ? value.x : high_;
      complete &= value.x == value.x;
    }
    if (complete) return;
    const auto is_missing = [&](Element x) {
      const auto n = static_cast<Element>(n_categories);
      return std::isnan(x) || (n_categories > 0 && !(x >= 0 && x < n));
    };
    std::size_t n_present = 0;
    for (std::size_t k = 0; k < values_.size(); ++k) {
      if (is_missing(values_[k].x)) {
        missing_.push_back(values_[k].row);
      } else {
        values_[n_present++] = values_[k];
      }
    }
    values_ = values_.first(n_present);
  }

  // Bytes are counted. Zeros, which are most values of sparse inputs, are not sorted.
  void sort_values() {
    if constexpr (Inputs::has_bytes) return count_values();
    constexpr auto x = &Value<Element>::x;
    const auto rest = std::ranges::partition(values_, [](auto v) { return v < 0; }, x);
    const auto above = std::ranges::partition(rest, [](auto v) { return v == 0; }, x);
    std::ranges::sort(values_.begin(), rest.begin(), {}, x);
    std::ranges::sort(above, {}, x);
  }

  void count_values() {
    std::array<std::size_t, 257> place{};
    for (const auto& value : values_) ++place[static_cast<std::size_t>(value.x) + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    other_.resize(buffer_.size());
    for (const auto& value : values_) other_[place[static_cast<std::size_t>(value.x)]++] = value;
    buffer_.swap(other_);
    values_ = std::span(buffer_).first(values_.size());
  }

  template <class F>
  void visit_threshold(const NodeSearch& search, Rng& rng, F&& f) {
    const double threshold = low_ < high_ ? uniform_between(low_, high_, rng.uniform())
                                          : std::numeric_limits<double>::infinity();
    Option option = divide(search, rng, [&](Element x) { return x <= threshold; });
    option.threshold = threshold;
    f(option, [](std::size_t) { return false; });
  }

  // Each category goes to a random side. If all go to the same side, one of them is moved.
  template <class F>
  void visit_random_subset(const NodeSearch& search, Rng& rng, F&& f) {
    const std::size_t n = groups_.size();
    chosen_.assign(n, 0);
    std::size_t n_left = 0;
    for (auto& side : chosen_) n_left += side = static_cast<char>(rng.below(2));
    const bool one_sided = n_left == 0 || n_left == n;
    if (one_sided && n > 1) chosen_[rng.below(static_cast<std::uint32_t>(n))] ^= 1;
    const auto is_chosen = [&](std::size_t g) { return chosen_[g] != 0; };
    f(divide(search, rng, [&](Element x) { return is_chosen(groups_.of(x)); }), is_chosen);
  }

  // Scores one split, given by which present values go left. Missing values go to a random side,
  // with probability proportional to its present weight.
  template <class Left>
  Option divide(const NodeSearch& search, Rng& rng, Left&& left) {
    // Without branches: each row is written to both sides, and kept on one.
    std::size_t n_left = 0, n_right = 0;
    for (const auto& value : values_) {
      const bool goes_left = left(value.x);
      left_[n_left] = right_[n_right] = value.row;
      n_left += goes_left;
      n_right += !goes_left;
    }
    const Node& node = search.node;
    bool missing_left = false;
    if (!missing_.empty()) {
      const double present = node.weight - search.sample.weight_of(missing_);
      const double u = rng.uniform() * present;
      const double on_left = search.sample.weight_of(std::span(left_).first(n_left));
      missing_left = n_left == 0 || (n_right > 0 && u < on_left);
      std::size_t& n_side = missing_left ? n_left : n_right;
      auto& side = missing_left ? left_ : right_;
      std::copy(missing_.begin(), missing_.end(), side.begin() + n_side);
      n_side += missing_.size();
    }
    // The side of fewer rows is summed, unless it is the heavier one, which loses more digits.
    const Rows both[] = {Rows(left_).first(n_left), Rows(right_).first(n_right)};
    const std::size_t fewer = n_left <= n_right ? 0 : 1;
    const bool is_left = (2.0 * search.sample.weight_of(both[fewer]) > node.weight) == (fewer == 1);
    const Rows side = both[is_left ? 0 : 1];
    const double weight = search.sample.weight_of(side), count = search.sample.count_of(side);
    const double left_weight = is_left ? weight : node.weight - weight;
    // Splitting two rows leaves no variance.
    double norm = node.variance * weight * (node.weight - weight) / node.weight;
    const bool known = n_left + n_right == 2 && rules_.criterion == Criterion::variance;
    if (!known && search.scored) norm = scorer_.set_norm(search.frame, side, weight);
    if (missing_.empty()) missing_left = search.larger_left(left_weight);
    Option option{search.gain(norm, weight, count), left_weight, missing_left};
    if (missing_.empty()) {  // otherwise, rows are not ascending
      option.left = both[0];
      option.right = both[1];
    }
    return option;
  }

  // Every subset of the categories that may be the best, with missing values as one more category,
  // in the order of a Gray code. The first category always goes left.
  template <class F>
  void visit_every_subset(const NodeSearch& search, F&& f) {
    const std::size_t n_present = groups_.size();
    const std::size_t n = n_present + !missing_.empty();
    groups_.measure(scorer_, search.frame, search.sample, values_, missing_);
    const std::vector<double>& gram = groups_.gram();
    const auto for_groups = [](std::uint32_t some, auto&& body) {
      for (; some != 0; some &= some - 1) body(static_cast<std::size_t>(std::countr_zero(some)));
    };
    const auto weight_of = [&](std::uint32_t some) {
      double weight = 0.0;
      for_groups(some, [&](std::size_t g) { weight += groups_.weight(g); });
      return weight;
    };
    const std::uint32_t all = (1u << n) - 1;
    const std::span<const std::uint32_t> places =
        scorer_.group_width(search.frame) == 1 ? groups_.places_of_cuts() : groups_.all_places();
    for (const std::uint32_t code : places) {
      const std::uint32_t left = (code ^ code >> 1) << 1 | 1, right = all & ~left;
      // The lighter side is summed, which loses no digits to the other.
      const double left_weight = weight_of(left), right_weight = weight_of(right);
      const std::uint32_t side = left_weight <= right_weight ? left : right;
      double norm = 0.0, count = 0.0;
      for_groups(side, [&](std::size_t g) {
        const double* const products = &gram[g * n];
        double before = 0.0;
        for_groups(side & ((1u << g) - 1), [&](std::size_t h) { before += products[h]; });
        norm += 2.0 * before + products[g];
        count += groups_.count(g);
      });
      const bool missing_left =
          missing_.empty() ? search.larger_left(left_weight) : (left >> n_present & 1) != 0;
      const double gain = search.gain(norm, std::min(left_weight, right_weight), count);
      const auto chosen = [&](std::size_t g) { return (left >> g & 1) != 0; };
      if (f({gain, left_weight, missing_left}, chosen)) return;
    }
  }

  // With many categories, sorts them along the first principal direction of their means and tries
  // the cuts of this order. For a single output, these include the best subset.
  template <class F>
  void visit_ordered_subsets(const NodeSearch& search, F&& f) {
    const std::vector<std::int32_t> rank =
        groups_.principal_order(scorer_, search.frame, search.sample, values_);
    for (auto& value : values_) value.x = static_cast<Element>(rank[groups_.of(value.x)]);
    sort_values();
    visit_cuts(search, f, [&](std::size_t g, double threshold) { return rank[g] <= threshold; });
  }

  const Inputs& X_;
  S& scorer_;
  const Rules& rules_;
  std::optional<RankSort<Inputs>> rank_sort_;  // empty: values are sorted in every node
  bool by_rank_ = false;                       // in this node
  Sweep<Element> sweep_;
  Groups groups_;

  // Scratch memory, as long as the tree's sample:
  std::vector<Value<Element>> buffer_, other_;
  std::span<Value<Element>> values_;   // of the feature, where present
  Element low_ = 0, high_ = 0;         // their range
  std::vector<std::int32_t> missing_;  // rows where it is missing
  std::vector<std::int32_t> left_, right_;
  std::vector<char> chosen_;
};

}  // namespace okforest
