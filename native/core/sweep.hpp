// All cuts of numeric features: a node's rows sorted by the values of each, and the gains of the
// thresholds between them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/inputs.hpp"
#include "core/rules.hpp"
#include "core/scorer.hpp"

namespace okforest {

// A node's rows sorted by a feature's values, with missing values at one end. Around the node's
// mean, the two sides of a cut have opposite sums of the same norm. So rows are listed from both
// ends up to the middle of the weight. In many features, such as counts or pixels, many rows are
// equal at one end: if they have at least an eighth of the weight, rows are listed from the other
// end only, without them. The listed side of a cut has at most seven eighths of the weight, so that
// its sum around the mean keeps its digits.
inline constexpr double kMostListed = 0.875;

struct Listing {
  std::size_t slot;  // of the feature, as the caller numbers them
  bool missing_left;
  bool any_missing;  // in the node
  std::size_t first_cut, n_cuts;
  std::size_t n_left;  // the first cuts, listed from the left; others are listed from the right
};

struct Cut {
  double gain = kNoGain;
  double threshold = 0.0;
  double left_weight = 0.0;
};

template <class T>
class Sweep {
 public:
  // Begins a search of a node: removes all listings and makes room for n_values values.
  void begin(const Sample& sample, const Gain& gain, std::size_t n_values) {
    sample_ = sample;
    gain_ = gain;
    listings_.clear();
    prefixes_.clear();
    n_rows_ = n_cuts_ = 0;
    if (rows_.size() >= n_values) return;
    rows_.resize(n_values);
    lengths_.resize(n_values);
    edges_.resize(n_values);
    gains_.resize(n_values);
    weights_.resize(n_values);
  }

  // Adds the listings of a feature's sorted values: none if they are all equal, one if none is
  // missing, and two if some are, with the missing values on the right and on the left.
  void add(std::size_t slot, std::span<const Value<T>> values, Rows missing) {
    if (values.empty() || (missing.empty() && !(values.front().x < values.back().x))) return;
    add(slot, values, missing, false);
    // If all present values are equal, both listings have the same single cut.
    if (!missing.empty() && values.front().x < values.back().x) add(slot, values, missing, true);
  }

  // The same, without missing values, for sorted values other than zero: all other rows, which have
  // at least an eighth of the weight, have the value zero and are not listed.
  void add_around_zeros(std::size_t slot, std::span<const Value<T>> values) {
    const std::size_t first_cut = n_cuts_, n = values.size();
    std::size_t n_below = 0;
    List left(*this);
    for (; n_below < n && values[n_below].x < 0; ++n_below) {
      const bool more = n_below + 1 < n && values[n_below + 1].x < 0;
      const Edge edge{values[n_below].x, more ? values[n_below + 1].x : 0};
      left.append(values[n_below].row);
      left.cut(edge, edge.below < edge.above);
    }
    left.finish(*this);
    const std::size_t n_left = n_cuts_ - first_cut;
    List right(*this);
    for (std::size_t l = n; l-- > n_below;) {
      const Edge edge{l > n_below ? values[l - 1].x : 0, values[l].x};
      right.append(values[l].row);
      right.cut(edge, edge.below < edge.above);
    }
    right.finish(*this);
    close(slot, false, false, first_cut, n_left);
  }

  std::size_t size() const { return listings_.size(); }
  auto begin() const { return listings_.begin(); }
  auto end() const { return listings_.end(); }

  // Finds the gains of all cuts of all listings, given prefix_norms(lists, norms).
  template <class PrefixNorms>
  Precision score(PrefixNorms&& prefix_norms) {
    if (listings_.empty()) return {};
    const Precision precision = prefix_norms(std::span<const Prefixes>(prefixes_), gains_.data());
    for (std::size_t k = 0; k < n_cuts_; ++k) gains_[k] = gain_.of(gains_[k], weights_[k]);
    return precision;
  }

  // The largest gain of a listing, a bound of its error, and the leftmost cut that may have it,
  // unless the gain is below `least` even so.
  struct Best {
    Cut cut;
    double largest = kNoGain, error = 0.0;
    std::size_t n_close = 0;  // number of cuts that may have it
  };
  Best best(const Listing& listing, const Precision& precision, double noise, double least) const {
    Best best;
    const std::span gains = std::span(gains_).subspan(listing.first_cut, listing.n_cuts);
    best.largest = *std::ranges::max_element(gains);
    // Errors grow with the gain and with the listed weight.
    best.error = precision.exact() ? 0.0 : precision.error(best.largest, 1.0 / (1.0 - kMostListed));
    if (best.largest + best.error < least) return best;
    least = least_equal_of(best.largest - best.error, noise) - best.error;
    for_indices(listing, [&](std::size_t k) {
      if (gains_[k] < least) return false;
      if (best.n_close++ == 0) best.cut = cut(listing, k);
      return precision.exact();
    });
    return best;
  }

  // Calls f(cut) for the cuts of a listing from left to right, until it returns true.
  template <class F>
  void for_cuts(const Listing& listing, F&& f) const {
    for_indices(listing, [&](std::size_t k) { return f(cut(listing, k)); });
  }

 private:
  // The values on both sides of a cut; `above` is infinite if only missing values are there.
  struct Edge {
    T below, above;
  };

  Cut cut(const Listing& listing, std::size_t k) const {
    const bool left = k < listing.first_cut + listing.n_left;
    return {gains_[k], threshold_between(edges_[k].below, edges_[k].above),
            left ? weights_[k] : gain_.weight - weights_[k]};
  }

  template <class F>
  void for_indices(const Listing& listing, F&& f) const {
    for (std::size_t c = 0; c < listing.n_left; ++c) {
      if (f(listing.first_cut + c)) return;
    }
    for (std::size_t c = listing.n_cuts; c-- > listing.n_left;) {
      if (f(listing.first_cut + c)) return;
    }
  }

  // With the missing values on one side.
  void add(std::size_t slot, std::span<const Value<T>> values, Rows missing, bool missing_left) {
    const std::size_t n = values.size(), first_cut = n_cuts_;
    const bool ends_missing = !missing.empty() && !missing_left;
    const auto differ = [&](std::size_t k) { return k == n || values[k - 1].x < values[k].x; };
    std::size_t n_first = 1, n_last = 1;  // number of equal values at each end
    while (n_first + 8 < n && values[n_first + 7].x == values[0].x) n_first += 8;
    while (!differ(n_first)) ++n_first;
    while (n_last + 8 < n && values[n - n_last - 8].x == values[n - 1].x) n_last += 8;
    while (n_last < n && !differ(n - n_last)) ++n_last;
    const std::size_t at_left = n_first + (missing_left ? missing.size() : 0);
    const std::size_t at_right = ends_missing ? missing.size() : n_last;
    const bool one_sided =
        at_left > at_right
            ? outweighs(values.first(n_first), missing_left ? missing : Rows{})
            : outweighs(values.last(ends_missing ? 0 : n_last), ends_missing ? missing : Rows{});
    const double most = one_sided ? gain_.weight : gain_.weight / 2;
    const std::size_t end = one_sided && at_left > at_right ? 0 : ends_missing ? n : n - n_last;

    List left(*this);
    if (missing_left) left.append(missing);
    std::size_t k = 0;
    for (; k < end; ++k) {
      left.append(values[k].row);
      if (left.weight > most) break;
      left.cut(k + 1 < n ? Edge{values[k].x, values[k + 1].x} : last_edge(values), differ(k + 1));
    }
    left.finish(*this);
    const std::size_t n_left = n_cuts_ - first_cut;

    List right(*this);
    if (ends_missing && k < n) {
      right.append(missing);
      right.cut(last_edge(values), true);
    }
    while (k < n && !differ(k + 1)) ++k;  // the equal values in the middle
    for (std::size_t l = n; l-- > k + 1;) {
      right.append(values[l].row);
      right.cut({values[l - 1].x, values[l].x}, differ(l));
    }
    right.finish(*this);
    close(slot, missing_left, !missing.empty(), first_cut, n_left);
  }

  // Makes a listing of the last two lists, unless they have no cut.
  void close(std::size_t slot, bool missing_left, bool any_missing, std::size_t first_cut,
             std::size_t n_left) {
    if (n_cuts_ == first_cut) return prefixes_.resize(prefixes_.size() - 2);
    listings_.push_back({slot, missing_left, any_missing, first_cut, n_cuts_ - first_cut, n_left});
  }

  static Edge last_edge(std::span<const Value<T>> values) {
    return {values.back().x, std::numeric_limits<T>::infinity()};
  }

  // Whether rows at one end have so much weight that all others may be listed.
  bool outweighs(std::span<const Value<T>> values, Rows missing) const {
    const double least = (1.0 - kMostListed) * gain_.weight;
    if (sample_.plain) return static_cast<double>(values.size() + missing.size()) >= least;
    double weight = sample_.weight_of(missing);
    for (std::size_t k = 0; k < values.size() && weight < least; ++k) {
      weight += sample_.weight[values[k].row];
    }
    return weight >= least;
  }

  // Rows from one end and the cuts between them, written to the end of the arrays of a sweep.
  struct List {
    const Sample sample;
    const Gain gain;
    const bool counted;  // whether counts differ from weights
    std::int32_t *const rows, *const lengths;
    Edge* const edges;
    double* const weights;
    std::int32_t n_rows = 0;
    std::size_t n_cuts = 0;
    double weight = 0.0, count = 0.0;

    explicit List(Sweep& sweep)
        : sample(sweep.sample_),
          gain(sweep.gain_),
          counted(!sample.plain && !sample.weights_count()),
          rows(&sweep.rows_[sweep.n_rows_]),
          lengths(&sweep.lengths_[sweep.n_cuts_]),
          edges(&sweep.edges_[sweep.n_cuts_]),
          weights(&sweep.weights_[sweep.n_cuts_]) {}

    void append(std::int32_t row) {
      rows[n_rows++] = row;
      weight += sample.plain ? 1.0 : sample.weight[row];
      count = counted ? count + sample.count[row] : weight;
    }
    void append(Rows some) {
      for (const auto row : some) append(row);
    }

    // Without branches: a cut is written, and kept if its values differ and its sides are allowed.
    void cut(Edge edge, bool differ) {
      lengths[n_cuts] = n_rows;
      edges[n_cuts] = edge;
      weights[n_cuts] = weight;
      n_cuts += differ & gain.allows(count);
    }

    // Rows after the last cut are removed.
    void finish(Sweep& sweep) {
      const auto length = n_cuts == 0 ? 0 : static_cast<std::size_t>(lengths[n_cuts - 1]);
      sweep.prefixes_.push_back({{rows, length}, {lengths, n_cuts}});
      sweep.n_rows_ += length;
      sweep.n_cuts_ += n_cuts;
    }
  };

  Sample sample_{};
  Gain gain_{};
  std::vector<Listing> listings_;
  std::vector<Prefixes> prefixes_;  // of each, the lists from the left and from the right
  // Concatenated over the lists:
  std::vector<std::int32_t> rows_;     // as listed
  std::vector<std::int32_t> lengths_;  // of the part of the list on one side of each cut
  std::vector<Edge> edges_;
  std::vector<double> gains_, weights_;  // of each cut, and of the listed side
  std::size_t n_rows_ = 0, n_cuts_ = 0;
};

}  // namespace okforest
