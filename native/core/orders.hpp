// A node's rows sorted by the values of a feature, and the best thresholds in this order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/gain.hpp"
#include "core/inputs.hpp"
#include "core/prefixes.hpp"
#include "core/rules.hpp"

namespace okforest {

// A node's rows sorted by a feature's values, with missing values at one end. Around the node's
// mean, the two sides of a cut have opposite sums of the same norm. So rows are listed from one end
// only, without the ties at the other end. In many features these are most rows, such as the zeros
// of counts or the background of images.
struct Order {
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
class Orders {
 public:
  // Removes all orders and makes room for n_values values.
  void begin(std::size_t n_values) {
    orders_.clear();
    n_rows_ = n_cuts_ = 0;
    if (rows_.size() >= n_values) return;
    rows_.resize(n_values);
    lengths_.resize(n_values);
    edges_.resize(n_values);
    norms_.resize(n_values);
    left_weights_.resize(n_values);
  }

  // Adds the orders of a feature's sorted values: none if they are all equal, one if none is
  // missing, and two if some are, with the missing values on the right and on the left.
  void add(std::size_t slot, std::span<const Value<T>> values,
           std::span<const std::int32_t> missing) {
    if (values.empty() || (missing.empty() && !(values.front().x < values.back().x))) return;
    add(slot, values, missing, false);
    // If all present values are equal, both orders have the same single cut.
    if (!missing.empty() && values.front().x < values.back().x) add(slot, values, missing, true);
  }

  std::size_t size() const { return orders_.size(); }
  auto begin() const { return orders_.begin(); }
  auto end() const { return orders_.end(); }

  // Finds the norms of all cuts of all orders.
  template <class Scorer>
  void score(Scorer& scorer) {
    if (orders_.empty()) return;
    prefixes_.clear();
    for (const Order& order : orders_) {
      prefixes_.push_back({std::span(rows_).subspan(order.first_row, order.n_rows),
                           std::span(lengths_).subspan(order.first_cut, order.n_cuts)});
    }
    scorer.prefix_norms(prefixes_, norms_.data());
  }

  // The best cut of an order, the leftmost among equals.
  Cut best_cut(const Order& order, const Sample& sample, const Gain& gain) {
    const std::int32_t* row = rows_.data() + order.first_row;
    std::size_t length = 0;
    double weight = 0.0, count = 0.0;
    for (std::size_t k = order.first_cut; k < order.first_cut + order.n_cuts; ++k) {
      const auto some = std::span(row + length, row + lengths_[k]);
      length = static_cast<std::size_t>(lengths_[k]);
      weight += sample.weight_of(some);
      count += sample.count_of(some);
      left_weights_[k] = order.from_right ? gain.weight - weight : weight;
      norms_[k] = gain(norms_[k], left_weights_[k], order.from_right ? gain.count - count : count);
    }
    Cut best;
    for (std::size_t c = 0; c < order.n_cuts; ++c) {
      const std::size_t k = order.first_cut + (order.from_right ? order.n_cuts - 1 - c : c);
      if (norms_[k] < 0.0 || !gain.beats(norms_[k], best.gain)) continue;
      best = {norms_[k], edges_[k].threshold(), left_weights_[k]};
    }
    return best;
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

  void add(std::size_t slot, std::span<const Value<T>> values,
           std::span<const std::int32_t> missing, bool missing_left) {
    const auto n = values.size();
    std::size_t n_first = 1, n_last = 1;  // number of equal values at each end
    while (n_first < n && values[n_first].x == values[0].x) ++n_first;
    while (n_last < n && values[n - 1 - n_last].x == values[n - 1].x) ++n_last;
    const bool ends_missing = !missing.empty() && !missing_left;
    const std::size_t at_left = n_first + (missing_left ? missing.size() : 0);
    const std::size_t at_right = ends_missing ? missing.size() : n_last;
    Order order{slot, missing_left, !missing.empty(), at_left > at_right, n_rows_, 0, n_cuts_, 0};
    if (missing_left != order.from_right) {
      n_rows_ = std::ranges::copy(missing, rows_.begin() + n_rows_).out - rows_.begin();
    }
    const auto cut = [&](T below, T above) {
      lengths_[n_cuts_] = static_cast<std::int32_t>(n_rows_ - order.first_row);
      edges_[n_cuts_++] = {below, above};
    };
    const T infinity = std::numeric_limits<T>::infinity();
    if (order.from_right) {
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
    order.n_rows = n_rows_ - order.first_row;
    order.n_cuts = n_cuts_ - order.first_cut;
    orders_.push_back(order);
  }

  std::vector<Order> orders_;
  std::vector<Prefixes> prefixes_;
  // Concatenated over the orders:
  std::vector<std::int32_t> rows_;     // as listed
  std::vector<std::int32_t> lengths_;  // of the part of the list on one side of each cut
  std::vector<Edge> edges_;
  std::vector<double> norms_, left_weights_;
  std::size_t n_rows_ = 0, n_cuts_ = 0;
};

}  // namespace okforest
