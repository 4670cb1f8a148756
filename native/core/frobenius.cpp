#include "core/frobenius.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace okforest {

FrobeniusScorer::FrobeniusScorer(const MatrixView& gram)
    : K_(gram),
      n_rows_(gram.n_rows),
      gram_(GramOutputs{gram, {}}),
      coordinates_(static_cast<std::size_t>(n_rows_ * n_rows_)),
      sum_(static_cast<std::size_t>(n_rows_)) {}

void FrobeniusScorer::begin(std::span<const double> weight, Rows rows) {
  weight_ = weight;
  gram_.begin(weight, rows);
  n_coordinates_ = 0;
  // At first the root is the only leaf: the first coordinate is sqrt(W) <mean, phi_i>.
  add_coordinate(rows, {});
}

// Adds the coordinate sqrt(c) <mean over plus - mean over minus, phi_i>; c is the weight of `plus`
// if `minus` is empty.
void FrobeniusScorer::add_coordinate(Rows plus, Rows minus) {
  if (n_coordinates_ == n_rows_) return;  // there are no more leaves than rows
  double plus_weight = 0.0, minus_weight = 0.0;
  for (const auto j : plus) plus_weight += weight_of(j);
  for (const auto j : minus) minus_weight += weight_of(j);
  const double c =
      minus.empty() ? plus_weight : plus_weight * minus_weight / (plus_weight + minus_weight);
  std::fill(sum_.begin(), sum_.end(), 0.0);
  for (const auto j : plus)
    kernels().add_scaled(sum_.data(), K_.row(j), weight_of(j) / plus_weight, n_rows_);
  for (const auto j : minus) {
    kernels().add_scaled(sum_.data(), K_.row(j), -weight_of(j) / minus_weight, n_rows_);
  }
  for (std::int64_t i = 0; i < n_rows_; ++i) {
    coordinates_[i * n_rows_ + n_coordinates_] = std::sqrt(c) * sum_[i];
  }
  ++n_coordinates_;
}

void FrobeniusScorer::divide(Frame* frame, Rows left, Rows right) {
  add_coordinate(left, right);
  gram_.divide(frame == nullptr ? nullptr : &frame->gram, left, right);
}

void FrobeniusScorer::enter(Node& node, Rows rows, const Frame* parent, Frame& frame) {
  frame.mean.assign(static_cast<std::size_t>(n_coordinates_), 0.0);
  for (const auto i : rows) {
    kernels().add_scaled(frame.mean.data(), coordinates(i), weight_of(i) / node.weight,
                         n_coordinates_);
  }
  gram_.enter(node, rows, parent == nullptr ? nullptr : &parent->gram, frame.gram);
}

void FrobeniusScorer::add_row(std::int32_t i) {
  kernels().add_scaled(sum_.data(), coordinates(i), weight_of(i), n_coordinates_);
}

// The norm of a side from its weight, its norm in the Gram form, and sum_.
double FrobeniusScorer::total(const Frame& frame, double norm, double weight) const {
  const double all = frame.gram.weight, c = weight * (all - weight) / all;
  const auto n = static_cast<std::int64_t>(frame.mean.size());
  const double within = kernels().squared_distance(sum_.data(), frame.mean.data(), weight, n);
  return 2.0 * within + (c > 0.0 ? norm * norm / c : 0.0);
}

void FrobeniusScorer::set_norms(const Node& node, const Frame& frame, std::span<const Rows> sets,
                                const double* weights, double* norms) {
  gram_.set_norms(node, frame.gram, sets, weights, norms);
  for (std::size_t s = 0; s < sets.size(); ++s) {
    std::fill_n(sum_.begin(), n_coordinates_, 0.0);
    for (const auto i : sets[s]) add_row(i);
    norms[s] = total(frame, std::max(0.0, norms[s]), weights[s]);
  }
}

void FrobeniusScorer::prefix_norms(const Node& node, Rows rows, const Frame& frame,
                                   std::span<const Prefixes> lists, double* norms) {
  gram_.prefix_norms(node, rows, frame.gram, lists, norms);
  for (const Prefixes& list : lists) {
    std::fill_n(sum_.begin(), n_coordinates_, 0.0);
    double weight = 0.0;
    std::int32_t k = 0;
    for (const auto length : list.lengths) {
      for (; k < length; ++k) {
        add_row(list.rows[k]);
        weight += weight_of(list.rows[k]);
      }
      *norms = total(frame, std::max(0.0, *norms), weight);
      ++norms;
    }
  }
}

Precision FrobeniusScorer::search_sides(const Node& node, Rows, const Frame& frame,
                                        std::span<const Side> sides, double* norms) {
  for (const Side& side : sides) set_norms(node, frame, {&side.rows, 1}, &side.weight, norms++);
  return {};
}

Precision FrobeniusScorer::search_prefixes(const Node& node, Rows rows, const Frame& frame,
                                           std::span<const Prefixes> lists, double* norms) {
  prefix_norms(node, rows, frame, lists, norms);
  return {};
}

void FrobeniusScorer::group_gram(const Frame&, Rows, Rows, std::span<const double>,
                                 std::span<double>) {
  throw std::logic_error("the Frobenius rule does not support categorical features");
}

}  // namespace okforest
