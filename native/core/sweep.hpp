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
// mean, the two sides of a cut have opposite sums of the same norm. So rows are listed from one end
// only, without the ties at the other end. In many features these are most rows, such as the zeros
// of counts or the background of images.
struct Listing {
  std::size_t slot;  // of the feature, as the caller numbers them
  bool missing_left;
  bool any_missing;  // in the node
  bool from_right;   // where the list starts
  std::size_t first_row, n_rows;
  std::size_t first_cut, n_cuts;
};

struct Cut {
  double gain = kNoGain;
  double threshold = 0.0;
  double left_weight = 0.0;
};

template <class T>
class Sweep {
 public:
  // Removes all listings and makes room for n_values values.
  void begin(std::size_t n_values) {
    listings_.clear();
    n_rows_ = n_cuts_ = 0;
    if (rows_.size() >= n_values) return;
    rows_.resize(n_values);
    lengths_.resize(n_values);
    edges_.resize(n_values);
    gains_.resize(n_values);
    left_weights_.resize(n_values);
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
  Precision score(const Sample& sample, const Gain& gain, PrefixNorms&& prefix_norms) {
    if (listings_.empty()) return {};
    prefixes_.clear();
    for (const Listing& listing : listings_) {
      prefixes_.push_back({std::span(rows_).subspan(listing.first_row, listing.n_rows),
                           std::span(lengths_).subspan(listing.first_cut, listing.n_cuts)});
    }
    const Precision precision = prefix_norms(std::span<const Prefixes>(prefixes_), gains_.data());
    for (const Listing& listing : listings_) to_gains(listing, sample, gain);
    return precision;
  }

  // The largest gain of a listing, a bound of its error, and the leftmost cut that may have it.
  struct Best {
    Cut cut;
    double largest = kNoGain, error = 0.0;
    std::size_t n_close = 0;  // number of cuts that may have it
  };
  Best best(const Listing& listing, const Gain& gain, const Precision& precision,
            double noise) const {
    Best best;
    const std::size_t end = listing.first_cut + listing.n_cuts;
    std::size_t largest = listing.first_cut;
    for (std::size_t k = listing.first_cut; k < end; ++k) {
      if (gains_[k] > gains_[largest]) largest = k;
    }
    best.largest = gains_[largest];
    if (best.largest < 0.0) return best;
    // The norms are of the listed side, which grows: errors are largest at the end.
    const auto error = [&](std::size_t k) {
      const double unlisted =
          listing.from_right ? left_weights_[k] : gain.weight - left_weights_[k];
      return precision.error(best.largest, gain.weight / unlisted);
    };
    const double most_error = precision.exact() ? 0.0 : error(end - 1);
    best.error = precision.exact() ? 0.0 : error(largest);
    const double least = least_equal_of(best.largest - best.error, noise);
    for_indices(listing, [&](std::size_t k) {
      if (gains_[k] + most_error < least || gains_[k] < 0.0) return false;
      if (most_error > 0.0) {
        const double bound = error(k);
        if (gains_[k] + bound < least) return false;
        // The true largest gain may be that of another cut.
        best.error = std::max(best.error, gains_[k] + bound - best.largest);
      }
      if (best.n_close++ == 0) best.cut = cut(k);
      return most_error == 0.0;
    });
    return best;
  }

  // Calls f(cut) for the cuts of a listing from left to right, until it returns true.
  template <class F>
  void for_cuts(const Listing& listing, F&& f) const {
    for_indices(listing, [&](std::size_t k) { return f(cut(k)); });
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

  Cut cut(std::size_t k) const { return {gains_[k], edges_[k].threshold(), left_weights_[k]}; }

  template <class F>
  void for_indices(const Listing& listing, F&& f) const {
    for (std::size_t c = 0; c < listing.n_cuts; ++c) {
      if (f(listing.first_cut + (listing.from_right ? listing.n_cuts - 1 - c : c))) return;
    }
  }

  // Turns the norms of a listing into gains.
  void to_gains(const Listing& listing, const Sample& sample, const Gain& gain) {
    const std::int32_t* row = rows_.data() + listing.first_row;
    std::size_t length = 0;
    double weight = 0.0, count = 0.0;
    for (std::size_t k = listing.first_cut; k < listing.first_cut + listing.n_cuts; ++k) {
      const Rows some(row + length, row + lengths_[k]);
      length = static_cast<std::size_t>(lengths_[k]);
      weight += sample.weight_of(some);
      count += sample.count_of(some);
      left_weights_[k] = listing.from_right ? gain.weight - weight : weight;
      gains_[k] =
          gain(gains_[k], left_weights_[k], listing.from_right ? gain.count - count : count);
    }
  }

  // With the missing values on one side.
  void add(std::size_t slot, std::span<const Value<T>> values, Rows missing, bool missing_left) {
    const auto n = values.size();
    std::size_t n_first = 1, n_last = 1;  // number of equal values at each end
    while (n_first < n && values[n_first].x == values[0].x) ++n_first;
    while (n_last < n && values[n - 1 - n_last].x == values[n - 1].x) ++n_last;
    const bool ends_missing = !missing.empty() && !missing_left;
    const std::size_t at_left = n_first + (missing_left ? missing.size() : 0);
    const std::size_t at_right = ends_missing ? missing.size() : n_last;
    Listing listing{slot, missing_left, !missing.empty(), at_left > at_right, n_rows_, 0, n_cuts_,
                    0};
    if (missing_left != listing.from_right) {
      n_rows_ = std::ranges::copy(missing, rows_.begin() + n_rows_).out - rows_.begin();
    }
    const auto cut = [&](T below, T above) {
      lengths_[n_cuts_] = static_cast<std::int32_t>(n_rows_ - listing.first_row);
      edges_[n_cuts_++] = {below, above};
    };
    const T infinity = std::numeric_limits<T>::infinity();
    if (listing.from_right) {
      if (ends_missing) cut(values[n - 1].x, infinity);
      for (std::size_t k = n; k-- > n_first;) {
        rows_[n_rows_++] = values[k].row;
        if (values[k - 1].x < values[k].x) cut(values[k - 1].x, values[k].x);
      }
    } else {
      const std::size_t n_listed = ends_missing ? n : n - n_last;
      for (std::size_t k = 0; k < n_listed; ++k) {
        rows_[n_rows_++] = values[k].row;
        if (k + 1 == n) {
          cut(values[k].x, infinity);
        } else if (values[k].x < values[k + 1].x) {
          cut(values[k].x, values[k + 1].x);
        }
      }
    }
    listing.n_rows = n_rows_ - listing.first_row;
    listing.n_cuts = n_cuts_ - listing.first_cut;
    listings_.push_back(listing);
  }

  std::vector<Listing> listings_;
  std::vector<Prefixes> prefixes_;
  // Concatenated over the listings:
  std::vector<std::int32_t> rows_;     // as listed
  std::vector<std::int32_t> lengths_;  // of the part of the list on one side of each cut
  std::vector<Edge> edges_;
  std::vector<double> gains_, left_weights_;
  std::size_t n_rows_ = 0, n_cuts_ = 0;
};

}  // namespace okforest
