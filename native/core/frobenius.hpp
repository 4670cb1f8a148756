// The Frobenius rule: splits minimise the squared error of the predicted kernel between training
// inputs, instead of the variance of the outputs within leaves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/gram.hpp"

namespace okforest {

// Between two training rows, a tree predicts the mean of K over their leaves. With M the sum over
// leaves of W mu mu^T, the squared error is ||K||^2 - ||M||^2. A split into sides of weights W_L
// and W_R, whose means differ by delta, adds c delta delta^T to M, where c = W_L W_R / W. It
// reduces the error by
//   2 c delta^T M delta + c^2 ||delta||^4.
// Every split gives rows one more coordinate, sqrt(c) <delta, phi_i>, and delta^T M delta is the
// squared distance between the two means in these coordinates. With s = c delta the sum of a side
// around the node's mean, the "norm" of this scorer is 2 s^T M s + ||s||^4 / c: the splitter
// divides it by c, which gives the reduction.
class FrobeniusScorer : public ScorerDefaults<FrobeniusScorer> {
 public:
  struct Frame {
    GramScorer::Frame gram;
    std::vector<double> mean;  // coordinates of the node's mean
  };

  // The matrix must not be centred, and must outlive the scorer. No tree has more leaves than
  // given.
  FrobeniusScorer(const MatrixView& gram, std::int64_t most_leaves)
      : K_(gram),
        n_rows_(gram.n_rows),
        most_leaves_(most_leaves),
        gram_(GramOutputs{gram, {}}),
        place_(static_cast<std::size_t>(n_rows_)),
        sum_(static_cast<std::size_t>(n_rows_)) {}

  void begin(std::span<const double> weight, Rows rows) {
    ScorerDefaults::begin(weight, rows);
    gram_.begin(weight, rows);
    rows_.assign(rows.begin(), rows.end());
    for (std::size_t k = 0; k < rows.size(); ++k) place_[rows[k]] = static_cast<std::int32_t>(k);
    width_ = std::min(most_leaves_, static_cast<std::int64_t>(rows.size()));
    const std::size_t n_entries = rows.size() * static_cast<std::size_t>(width_);
    if (coordinates_.size() < n_entries) {
      std::vector<double>().swap(coordinates_);  // so that both are never in memory
      coordinates_.resize(n_entries);
    }
    n_coordinates_ = 0;
    // At first the root is the only leaf: the first coordinate is sqrt(W) <mean, phi_i>.
    add_coordinate(rows, {});
  }

  void enter(Node& node, Rows rows, const Frame* parent, Frame& frame) {
    frame.mean.assign(static_cast<std::size_t>(n_coordinates_), 0.0);
    for (const auto i : rows) {
      kernels().add_scaled(frame.mean.data(), coordinates(i), weight_of(i) / node.weight,
                           n_coordinates_);
    }
    gram_.enter(node, rows, parent == nullptr ? nullptr : &parent->gram, frame.gram);
    // The rounding errors of both parts of a gain, 2 c delta^T M delta and (c ||delta||^2)^2.
    double variance = 0.0;  // of the coordinates
    for (const auto i : rows) {
      variance += weight_of(i) * kernels().squared_distance(coordinates(i), frame.mean.data(), 1.0,
                                                            n_coordinates_);
    }
    double scale = variance;
    for (const double x : frame.mean) scale += node.weight * x * x;
    node.noise =
        2.0 * (std::max(kNoise * variance, kRounding * std::sqrt(variance) * std::sqrt(scale)) +
               node.variance * node.noise);
  }

  void divide(Frame* frame, Rows left, Rows right) {
    add_coordinate(left, right);
    gram_.divide(frame == nullptr ? nullptr : &frame->gram, left, right);
  }

  double set_norm(const Frame& frame, Rows rows, double weight) {
    const double norm = gram_.set_norm(frame.gram, rows, weight);
    std::fill_n(sum_.begin(), n_coordinates_, 0.0);
    for (const auto i : rows) add_row(i);
    return total(frame, std::max(0.0, norm), weight);
  }

  Precision prefix_norms(const Node& node, Rows rows, const Frame& frame,
                         std::span<const Prefixes> lists, bool, double* norms) {
    gram_.prefix_norms(node, rows, frame.gram, lists, true, norms);
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
    return {};
  }

  // Not supported: inner products of groups are not enough to score their unions.
  void group_gram(const Frame&, Rows, Rows, std::span<const double>, std::span<double>) {
    throw std::logic_error("the Frobenius rule does not support categorical features");
  }

 private:
  const double* coordinates(std::int32_t i) const { return &coordinates_[place_[i] * width_]; }

  // Adds the coordinate sqrt(c) <mean over plus - mean over minus, phi_i>; c is the weight of
  // `plus` if `minus` is empty.
  void add_coordinate(Rows plus, Rows minus) {
    if (n_coordinates_ == width_) return;
    double plus_weight = 0.0, minus_weight = 0.0;
    for (const auto j : plus) plus_weight += weight_of(j);
    for (const auto j : minus) minus_weight += weight_of(j);
    const double c =
        minus.empty() ? plus_weight : plus_weight * minus_weight / (plus_weight + minus_weight);
    std::fill(sum_.begin(), sum_.end(), 0.0);
    for (const auto j : plus) {
      kernels().add_scaled(sum_.data(), K_.row(j), weight_of(j) / plus_weight, n_rows_);
    }
    for (const auto j : minus) {
      kernels().add_scaled(sum_.data(), K_.row(j), -weight_of(j) / minus_weight, n_rows_);
    }
    double* coordinate = coordinates_.data() + n_coordinates_;
    for (const auto i : rows_) {
      *coordinate = std::sqrt(c) * sum_[i];
      coordinate += width_;
    }
    ++n_coordinates_;
  }

  void add_row(std::int32_t i) {
    kernels().add_scaled(sum_.data(), coordinates(i), weight_of(i), n_coordinates_);
  }

  // The norm of a side from its weight, its norm in the Gram form, and sum_.
  double total(const Frame& frame, double norm, double weight) const {
    const double all = frame.gram.weight, c = weight * (all - weight) / all;
    const auto n = static_cast<std::int64_t>(frame.mean.size());
    const double within = kernels().squared_distance(sum_.data(), frame.mean.data(), weight, n);
    return 2.0 * within + (c > 0.0 ? norm * norm / c : 0.0);
  }

  MatrixView K_;
  std::int64_t n_rows_, most_leaves_;
  GramScorer gram_;
  std::vector<std::int32_t> rows_;   // of the tree
  std::vector<std::int32_t> place_;  // training row -> its place in rows_
  std::int64_t width_ = 0, n_coordinates_ = 0;
  std::vector<double> coordinates_;  // width_ entries for each row of the tree
  std::vector<double> sum_;          // coordinates of a side's sum
};

}  // namespace okforest
