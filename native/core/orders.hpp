// Orders of a node's rows, by the values of features, and the best places to cut them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/gain.hpp"
#include "core/inputs.hpp"
#include "core/rules.hpp"

namespace okforest {

// An order of a feature's values, missing ones perhaps first.
struct Order {
  std::size_t slot;  // whose it is, as the caller counts
  bool missing_left;
  std::size_t n_missing;  // in the node
  std::size_t begin, size;
};

struct Cut {
  double gain = kNoGain;
  std::size_t place = 0;
  double left_weight = 0.0;
};

template <class T>
class Orders {
 public:
  // Begins anew, with room for so many values.
  void begin(std::size_t n_values) {
    orders_.clear();
    n_values_ = 0;
    if (values_.size() >= n_values) return;
    values_.resize(n_values);
    norms_.resize(n_values);
    rows_.resize(n_values);
  }

  // Adds the orders of a feature's sorted values: none if they cannot be cut; one; or if some are
  // missing two, with these on the right (and left out) and on the left (and first).
  void add(std::size_t slot, std::span<const Value<T>> values,
           std::span<const std::int32_t> missing) {
    if (values.empty() || (missing.empty() && !(values.front().x < values.back().x))) return;
    for (const bool missing_left : {false, true}) {
      if (missing_left && missing.empty()) break;
      orders_.push_back({slot, missing_left, missing.size(), n_values_,
                         values.size() + (missing_left ? missing.size() : 0)});
      if (missing_left) {
        for (const auto row : missing) values_[n_values_++] = {T{0}, row};
      }
      std::ranges::copy(values, values_.begin() + static_cast<std::ptrdiff_t>(n_values_));
      n_values_ += values.size();
    }
  }

  std::size_t size() const { return orders_.size(); }
  auto begin() const { return orders_.begin(); }
  auto end() const { return orders_.end(); }

  // Has all orders scored together.
  template <class Scorer>
  void score(Scorer& scorer) {
    if (orders_.empty()) return;
    std::ranges::transform(std::span(values_).first(n_values_), rows_.begin(), &Value<T>::row);
    spans_.clear();
    for (const Order& order : orders_) {
      spans_.push_back(std::span(rows_).subspan(order.begin, order.size));
    }
    scorer.prefix_norms(spans_, norms_.data());
  }

  // The best cut of an order, which is after one of its places; the first of equals.
  Cut best_cut(const Order& order, const Sample& sample, const Gain& gain) const {
    Cut best;
    double weight = 0.0, count = 0.0;
    const std::size_t end = order.begin + order.size;
    const std::size_t first = order.begin + (order.missing_left ? order.n_missing : 0);
    for (std::size_t k = order.begin; k < end; ++k) {
      weight += sample.weight[values_[k].row];
      count += sample.count[values_[k].row];
      // After the last value only the missing ones are left to be on the right.
      const bool can_cut = k + 1 < end ? k >= first && values_[k].x < values_[k + 1].x
                                       : order.n_missing > 0 && !order.missing_left;
      if (!can_cut) continue;
      const double found = gain(norms_[k], weight, count);
      if (found >= 0.0 && gain.beats(found, best.gain)) best = {found, k, weight};
    }
    return best;
  }

  T value(std::size_t place) const { return values_[place].x; }

  // A threshold t with x_k <= t < x_(k+1); infinite after the last value.
  double threshold(const Order& order, std::size_t place) const {
    if (place + 1 == order.begin + order.size) return std::numeric_limits<double>::infinity();
    const double a = values_[place].x, b = values_[place + 1].x;
    const double middle = a / 2 + b / 2;
    return middle >= a && middle < b ? middle : a;
  }

 private:
  std::vector<Order> orders_;
  std::vector<Value<T>> values_;  // order by order
  std::size_t n_values_ = 0;
  std::vector<std::int32_t> rows_;
  std::vector<std::span<const std::int32_t>> spans_;
  std::vector<double> norms_;
};

}  // namespace okforest
