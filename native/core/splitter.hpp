// The search for the best split of a node: a screening of many features at once, in float32, and an
// exact decision between those that may be the best.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "core/cuts.hpp"
#include "core/feature_order.hpp"
#include "core/feature_splits.hpp"
#include "core/found.hpp"
#include "core/stored_values.hpp"

namespace okforest {

// Features are swept together up to this number of features, and of their values in the node.
inline constexpr std::size_t kMaxSwept = 256;
inline constexpr std::size_t kSweptValues = 1 << 18;

// The sides of cuts are listed together up to this number of rows.
inline constexpr std::size_t kMaxListed = 1 << 18;

// In nodes of at most this many rows for each feature, features are sorted together.
inline constexpr std::size_t kSortedRows = 16;

template <class Inputs, Scorer S>
class Splitter {
 public:
  using Element = typename Inputs::Element;
  using Frame = typename S::Frame;

  Splitter(const Inputs& X, S& scorer, const Rules& rules, Ranks<Inputs>* ranks,
           const std::atomic<bool>& stopped)
      : X_(X),
        scorer_(scorer),
        rules_(rules),
        stopped_(stopped),
        any_category_(std::ranges::any_of(rules.n_categories, [](auto n) { return n > 0; })),
        order_(X.n_cols),
        splits_(X, scorer, rules, ranks),
        stored_(X) {
    // Not for all features, of which sparse inputs may have millions.
    const auto most = static_cast<std::size_t>(rules.max_features);
    found_.resize(std::min(most, order_.size()) + kCutWidth);
  }

  // Begins a tree, on a sample that must outlive it.
  void begin(const Sample& sample) {
    sample_ = sample;
    splits_.begin(sample);
    values_.resize(sample.rows.size());
    weight_.resize(sample.rows.size());
    count_.resize(weight_.size());
    classes_.resize(weight_.size());
  }

  // Finds the best split of a node; `split` must be empty. Features are visited in a random order:
  // max_features of them (as counted by the rules), and more until one can split the node. Among
  // equal splits the first wins.
  void search(const Node& node, Rows rows, const Frame& frame, Split& split) {
    const Gain gain{node.weight, node.count, at_least(rules_.min_samples_leaf)};
    const bool random = rules_.split_kind == SplitKind::random;
    // A single random split, and all splits of two rows, which are equal, need no comparison.
    const std::size_t most = std::min<std::size_t>(
        rows.size() == 2 ? 1 : static_cast<std::size_t>(rules_.max_features), order_.size());
    const bool compared = rows.size() > 2 && (most > 1 || !random);
    const Search<Frame> search{node,
                               rows,
                               frame,
                               sample_,
                               gain,
                               Rng(derive(node.seed, kCutStream)),
                               compared || needs_gains()};
    Rng rng(node.seed);
    splits_.enter(rows);
    stored_.enter(sample_, rows, node.weight);
    if (compared && most == order_.size()) {
      decide(search, order_.natural(), screen(search, order_.natural()), &rng, split);
    } else {
      if (compared) {
        const Rows features = draw(rng, rows, most);
        decide(search, features, screen(search, features), nullptr, split);
      }
      while (!split.found() && order_.n_drawn() < order_.size() && !stopped_) {
        const std::int32_t feature = order_.draw(rng);
        if (!stored_.all_zeros(feature)) take_best(search, feature, split);
      }
    }
    order_.put_back();
  }

 private:
  static constexpr std::uint64_t kCutStream = 3;

  // Draws features of which `most` count as candidates, and returns these.
  Rows draw(Rng& rng, Rows rows, std::size_t most) {
    if (!rules_.ignore_constant) {
      order_.draw(rng, most);
      return order_.drawn();
    }
    varying_.clear();
    while (varying_.size() < most && order_.n_drawn() < order_.size() && !stopped_) {
      const std::int32_t feature = order_.draw(rng);
      if (splits_.varies(rows, feature)) varying_.push_back(feature);
    }
    return varying_;
  }

  // Bounds the gains of some features, and returns a lower bound of the largest.
  double screen(const Search<Frame>& search, Rows features) {
    found_.any_unknown = false;
    double lower = rules_.split_kind == SplitKind::best ? screen_sweeps(search, features)
                   : stored_.in_use()                   ? screen_stored_cuts(search, features)
                                                        : screen_cuts(search, features);
    if (!found_.any_unknown) return lower;
    for (std::size_t slot = 0; slot < features.size() && !stopped_; ++slot) {
      if (found_.gain[slot] != kUnknown) continue;
      found_.set(slot, splits_.best(search, features[slot]));
      lower = std::max(lower, found_.gain[slot]);
    }
    return lower;
  }

  // One random cut of each numeric feature.
  double screen_cuts(const Search<Frame>& search, Rows features) {
    const std::size_t n = search.rows.size();
    const bool scalar = scorer_.row_values(search.rows, search.frame, values_.data());
    const std::size_t n_classes =
        scorer_.row_classes(search.rows, search.frame, classes_.data(), values_.data());
    const bool small = !scalar && n_classes == 0 && n <= kSmallNode &&
                       scorer_.small_gram(search.rows, search.frame, small_gram_);
    const bool as_bytes = Inputs::has_bytes && n_classes > 0 && sample_.plain;
    if (!scalar && !small && n_classes == 0) return screen_sides(search, features);
    const RowWeights weights{weight_.data(), sample_.plain ? weight_.data() : count_.data()};
    for (std::size_t k = 0; weights.counted() && k < n; ++k) {
      weight_[k] = sample_.weight[search.rows[k]];
      count_[k] = sample_.count[search.rows[k]];
    }
    for (std::size_t slot = 0; slot < features.size() && !stopped_; slot += kCutWidth) {
      const Rows some = features.subspan(slot, std::min(kCutWidth, features.size() - slot));
      cuts_.load(X_, some, search.rows, as_bytes);
      draw_cuts(search, slot);
      const CutGains gains{&found_.gain[slot], &found_.left_weight[slot]};
      if (scalar) {
        cuts_.score_values(values_.data(), weights, search.gain, gains);
      } else if (n_classes > 0) {
        cuts_.score_classes(classes_.data(), std::span(values_).first(n_classes), weights,
                            search.gain, gains);
      } else {
        cuts_.score_small(small_gram_, weights, search.gain, gains);
      }
      for (std::size_t c = 0; c < cuts_.size(); ++c) {
        found_.settled[slot + c] = !cuts_.has_missing(c);
        if (cuts_.is_unknown(c)) found_.set_unknown(slot + c);
      }
    }
    return settle_cuts(features, {});
  }

  void draw_cuts(const Search<Frame>& search, std::size_t slot) {
    cuts_.draw(search.cuts, Search<Frame>::kDrawsOfFeature, sample_, &found_.threshold[slot]);
  }

  // The same from lists of the rows on one side of each cut, many cuts at a time.
  double screen_sides(const Search<Frame>& search, Rows features) {
    const std::size_t n = search.rows.size();
    const std::size_t most =
        std::clamp(kMaxListed / n / kCutWidth * kCutWidth, kCutWidth, kMaxSides);
    cuts_.reserve_sides(n, std::min(most, features.size()));
    Precision precision;
    for (std::size_t slot = 0; slot < features.size() && !stopped_; slot += most) {
      const Rows many = features.subspan(slot, std::min(most, features.size() - slot));
      for (std::size_t k = 0; k < many.size(); k += kCutWidth) {
        cuts_.load(X_, many.subspan(k, std::min(kCutWidth, many.size() - k)), search.rows, false);
        draw_cuts(search, slot + k);
        cuts_.list_sides(sample_, search.node.weight, k);
      }
      precision = score_sides(search, slot, cuts_.listed(many.size()), precision);
    }
    return settle_cuts(features, precision);
  }

  // Bounds the errors of the gains of cuts, and returns a lower bound of the largest. The norms are
  // those of the smaller sides, so that W / (W - W_side) <= 2. Errors grow with the gain: that of
  // the largest bounds them all.
  double settle_cuts(Rows features, const Precision& precision) {
    for (std::size_t slot = 0; any_category_ && slot < features.size(); ++slot) {
      if (rules_.n_categories[features[slot]] > 0) found_.set_unknown(slot);
    }
    const double largest = largest_of(std::span(found_.gain).first(features.size()));
    const double error = precision.exact() || largest < 0.0 ? 0.0 : precision.error(largest, 2.0);
    std::fill_n(found_.error.begin(), features.size(), error);
    return largest - error;
  }

  // One random cut of each numeric feature of sparse inputs.
  double screen_stored_cuts(const Search<Frame>& search, Rows features) {
    Precision precision;
    for (std::size_t slot = 0; slot < features.size() && !stopped_; slot += kCutWidth) {
      const Rows some = features.subspan(slot, std::min(kCutWidth, features.size() - slot));
      const auto draws_of = [&](std::int32_t feature) { return search.draws_of(feature); };
      const auto sides = stored_.cut(some, draws_of, &found_.threshold[slot]);
      precision = score_sides(search, slot, sides, precision);
    }
    return settle_cuts(features, precision);
  }

  // Scores the smaller sides of cuts, which may be empty, for the slots from the given one on.
  // Returns their precision, or the given one if all are empty.
  Precision score_sides(const Search<Frame>& search, std::size_t slot,
                        std::span<const Smaller> smaller, const Precision& before) {
    Side sides[kMaxSides];
    std::size_t place[kMaxSides], n = 0;
    for (std::size_t c = 0; c < smaller.size(); ++c) {
      found_.set(slot + c, kNoGain);
      found_.settled[slot + c] = !smaller[c].any_missing;
      if (smaller[c].is_unknown) found_.set_unknown(slot + c);
      if (smaller[c].side.rows.empty()) continue;
      place[n] = c;
      sides[n++] = smaller[c].side;
    }
    if (n == 0) return before;
    double norms[kMaxSides];
    const Precision precision = scorer_.search_sides(search.node, search.rows, search.frame,
                                                     std::span(sides).first(n), norms);
    for (std::size_t s = 0; s < n; ++s) {
      const bool is_left = smaller[place[s]].is_left;
      const double weight = sides[s].weight, count = sample_.count_of(sides[s].rows);
      found_.gain[slot + place[s]] = search.gain(norms[s], weight, count);
      found_.left_weight[slot + place[s]] = is_left ? weight : search.node.weight - weight;
    }
    return precision;
  }

  // Every cut of each numeric feature, several features at a time.
  double screen_sweeps(const Search<Frame>& search, Rows features) {
    const std::size_t n = search.rows.size();
    const std::size_t most =
        std::max<std::size_t>(1, std::min({kSweptValues / n, kMaxSwept, features.size()}));
    const bool in_lanes =
        Inputs::is_dense && n <= kSortedRows * std::min(kCutWidth, features.size());
    const std::size_t width = in_lanes ? kCutWidth : 1;
    double lower = 0.0;  // bound of the largest gain
    for (std::size_t slot = 0; slot < features.size() && !stopped_;) {
      sweep_.begin(sample_, search.gain, (most + 2 * width) * n);
      while (sweep_.size() < most && slot < features.size()) {
        const Rows some = features.subspan(slot, std::min(width, features.size() - slot));
        if (in_lanes) cuts_.sort(X_, some, search.rows);
        for (std::size_t c = 0; c < some.size(); ++c)
          add_feature(search, some[c], slot++, c, in_lanes);
      }
      const Precision precision = sweep_.score([&](std::span<const Prefixes> lists, double* norms) {
        return scorer_.prefix_norms(search.node, search.rows, search.frame, lists, false, norms);
      });
      for (const Listing& listing : sweep_) take_listing(search, listing, precision, lower);
    }
    return lower;
  }

  // Adds a feature to the sweep; in lanes, it is the c-th of the cuts that were sorted.
  void add_feature(const Search<Frame>& search, std::int32_t feature, std::size_t slot,
                   std::size_t c, bool in_lanes) {
    found_.set(slot, kNoGain);
    if (rules_.n_categories[feature] > 0) return found_.set_unknown(slot);
    if (in_lanes && !cuts_.has_missing(c)) {
      if (!cuts_.is_constant(c)) sweep_.add(slot, cuts_.sorted(c), {});
      return;
    }
    if (stored_.in_use()) {
      if (const auto values = stored_.sorted(feature, kMostListed * search.node.weight)) {
        sweep_.add_around_zeros(slot, *values);
        // Other rows are summed than in the exact search: among equal features, it decides.
        found_.error[slot] = search.node.noise;
        return;
      }
    }
    const auto [values, missing] = splits_.sorted(search.rows, feature);
    sweep_.add(slot, values, missing);
  }

  void take_listing(const Search<Frame>& search, const Listing& listing, const Precision& precision,
                    double& lower) {
    const double noise = search.node.noise;
    const auto best = sweep_.best(listing, precision, noise, least_equal_of(lower, noise));
    const std::size_t slot = listing.slot;
    found_.error[slot] = std::max(found_.error[slot], best.error);
    lower = std::max(lower, best.largest - found_.error[slot]);
    // Of two listings, with missing values on either side, neither settles the feature.
    found_.settled[slot] = !listing.any_missing && (precision.exact() || best.n_close == 1);
    if (best.largest > found_.gain[slot]) found_.gain[slot] = best.largest;
    found_.threshold[slot] = best.cut.threshold;
    found_.left_weight[slot] = best.cut.left_weight;
  }

  // Takes the best split of all features that were screened, given a lower bound of the largest
  // gain, and the first among equals. With `rng`, they are visited in a random order, otherwise in
  // that of their slots.
  void decide(const Search<Frame>& search, Rows features, double lower, Rng* rng, Split& split) {
    if (stopped_) return;
    double least = least_equal_of(lower, search.node.noise);
    const auto contenders = found_.contenders(features.size(), least);
    if (contenders.empty()) return;
    if (contenders.size() == 1 && found_.settled[contenders[0]]) {
      return take_found(search, contenders[0], features, split);
    }
    double largest = kNoGain;
    for (const std::size_t slot : contenders) {
      if (found_.error[slot] > 0.0) {
        const bool settled = found_.settled[slot];
        found_.set(slot, splits_.best(search, features[slot]));
        found_.settled[slot] = settled && rules_.split_kind == SplitKind::random;
      }
      largest = std::max(largest, found_.gain[slot]);
    }
    least = least_equal_of(largest, search.node.noise);
    const auto is_best = [&](std::size_t k) { return found_.gain[k] >= least; };
    std::size_t slot = 0;
    if (rng != nullptr && std::ranges::count_if(contenders, is_best) > 1) {
      do {
        slot = static_cast<std::size_t>(order_.draw(*rng));
      } while (!is_best(slot) || !std::ranges::binary_search(contenders, slot));
    } else {
      slot = *std::ranges::find_if(contenders, is_best);
    }
    assert(found_.gain[slot] >= least);
    if (found_.settled[slot] && rules_.split_kind == SplitKind::random) {
      return take_found(search, slot, features, split);
    }
    // A random cut whose missing values were placed: its gain may differ by rounding errors.
    const bool random = rules_.split_kind == SplitKind::random;
    splits_.take(search, features[slot], random ? 0.0 : least, split);
  }

  // Takes a split whose threshold is known. Its gain may be that of a search, unless it matters.
  void take_found(const Search<Frame>& search, std::size_t slot, Rows features, Split& split) {
    const bool exact = found_.error[slot] == 0.0;
    split.feature = features[slot];
    split.threshold = found_.threshold[slot];
    split.missing_left = search.larger_left(found_.left_weight[slot]);
    split.gain = exact || !needs_gains() ? found_.gain[slot] : splits_.best(search, features[slot]);
  }

  void take_best(const Search<Frame>& search, std::int32_t feature, Split& split) {
    double least = 0.0;
    if (rules_.split_kind == SplitKind::best && search.rows.size() > 2) {
      least = splits_.best(search, feature);
      if (least < 0.0) return;
      least = least_equal_of(least, search.node.noise);
    }
    splits_.take(search, feature, least, split);
  }

  // Whether the gain of the best split matters, once it is known to be the best.
  bool needs_gains() const {
    return rules_.min_impurity_decrease > 0.0 || rules_.order == GrowthOrder::gain;
  }

  const Inputs& X_;
  S& scorer_;
  const Rules& rules_;
  const std::atomic<bool>& stopped_;
  const bool any_category_;
  Sample sample_{};
  FeatureOrder order_;
  FeatureSplits<Inputs, S> splits_;
  StoredValues<Inputs> stored_;

  // Scratch memory:
  Found found_;
  Cuts<Element> cuts_;
  Sweep<Element> sweep_;
  std::vector<double> values_;          // of the node's rows, or shares of their classes
  std::vector<double> weight_, count_;  // of the node's rows
  std::vector<std::int32_t> classes_;
  SmallGram small_gram_;
  std::vector<std::int32_t> varying_;  // features that were drawn and are not constant
};

}  // namespace okforest
