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
// equal at one end: if they have at least a quarter of the weight, rows are listed from the other
// end only, and these are not. So the listed side of a cut has at most three quarters of the
// weight: its sum around the mean keeps its digits.
inline constexpr double kMostListed = 0.75;

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

  // The largest gain of a listing, a bound of its error, and the leftmost cut that may have it.
  struct Best {
    Cut cut;
    double largest = kNoGain, error = 0.0;
    std::size_t n_close = 0;  // number of cuts that may have it
  };
  Best best(const Listing& listing, const Precision& precision, double noise) const {
    Best best;
    const std::span gains = std::span(gains_).subspan(listing.first_cut, listing.n_cuts);
    best.largest = *std::ranges::max_element(gains);
    // Errors grow with the gain and with the listed weight.
    best.error = precision.exact() ? 0.0 : precision.error(best.largest, 1.0 / (1.0 - kMostListed));
    const double least = least_equal_of(best.largest - best.error, noise) - best.error;
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

    // A threshold t with below <= t < above; infinite if `above` is.
    double threshold() const {
      const double a = below, b = above;
      const double middle = a / 2 + b / 2;
      return middle >= a && (middle < b || b == std::numeric_limits<double>::infinity()) ? middle
                                                                                         : a;
    }
  };

  Cut cut(const Listing& listing, std::size_t k) const {
    const bool left = k < listing.first_cut + listing.n_left;
    return {gains_[k], edges_[k].threshold(), left ? weights_[k] : gain_.weight - weights_[k]};
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
    while (!differ(n_first)) ++n_first;
    while (n_last < n && !differ(n - n_last)) ++n_last;
    const double at_left = weight_of(values.first(n_first), missing_left ? missing : Rows{});
    const double at_right =
        ends_missing ? weight_of({}, missing) : weight_of(values.last(n_last), {});
    const bool one_sided = std::max(at_left, at_right) >= (1.0 - kMostListed) * gain_.weight;
    const double most = one_sided ? gain_.weight : gain_.weight / 2;

    // Adds a cut before the k-th value, if there is one and it is allowed.
    const auto cut = [&](const List& list, std::size_t k) {
      lengths_[n_cuts_] = static_cast<std::int32_t>(n_rows_ - list.first_row);
      edges_[n_cuts_] = {values[k - 1].x, k < n ? values[k].x : std::numeric_limits<T>::infinity()};
      weights_[n_cuts_] = list.weight;
      n_cuts_ += differ(k) & gain_.allows(list.count);
    };
    List left{n_rows_, n_cuts_};
    if (missing_left) append(left, missing);
    const std::size_t end = one_sided && at_left > at_right ? 0 : ends_missing ? n : n - n_last;
    std::size_t k = 0;
    for (; k < end && (append(left, values[k].row), left.weight <= most); ++k) cut(left, k + 1);
    finish(left);
    const std::size_t n_left = n_cuts_ - first_cut;

    List right{n_rows_, n_cuts_};
    std::size_t begin = k;
    while (begin < n && values[begin].x == values[k].x) ++begin;
    if (ends_missing && k < n) {
      append(right, missing);
      cut(right, n);
    }
    for (std::size_t l = n; l-- > begin;) {
      append(right, values[l].row);
      cut(right, l);
    }
    finish(right);
    if (n_cuts_ == first_cut) {
      prefixes_.resize(prefixes_.size() - 2);
      return;
    }
    listings_.push_back(
        {slot, missing_left, !missing.empty(), first_cut, n_cuts_ - first_cut, n_left});
  }

  double weight_of(std::span<const Value<T>> values, Rows rows) const {
    if (sample_.plain) return static_cast<double>(values.size() + rows.size());
    double weight = sample_.weight_of(rows);
    for (const auto& value : values) weight += sample_.weight[value.row];
    return weight;
  }

  // A list of rows from one end, their weight and number of samples.
  struct List {
    std::size_t first_row, first_cut;
    double weight = 0.0, count = 0.0;
  };

  void append(List& list, std::int32_t row) {
    rows_[n_rows_++] = row;
    list.weight += sample_.plain ? 1.0 : sample_.weight[row];
    list.count += sample_.plain ? 1.0 : sample_.count[row];
  }
  void append(List& list, Rows rows) {
    for (const auto row : rows) append(list, row);
  }

  // Removes the rows after the last cut.
  void finish(const List& list) {
    const std::size_t n_cuts = n_cuts_ - list.first_cut;
    const std::size_t n_rows = n_cuts == 0 ? 0 : static_cast<std::size_t>(lengths_[n_cuts_ - 1]);
    n_rows_ = list.first_row + n_rows;
    prefixes_.push_back({std::span(rows_).subspan(list.first_row, n_rows),
                         std::span(lengths_).subspan(list.first_cut, n_cuts)});
  }

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
