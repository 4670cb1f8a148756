// The Frobenius rule: splits minimise the squared error of the predicted kernel between training
// inputs, instead of the variance of the outputs within leaves.
#pragma once

#include <cstdint>
#include <span>
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

  explicit FrobeniusScorer(const MatrixView& gram);  // not centred; must outlive the scorer

  void begin(std::span<const double> weight, Rows rows);
  void enter(Node& node, Rows rows, const Frame* parent, Frame& frame);
  void divide(Frame* frame, Rows left, Rows right);
  void set_norms(const Node& node, const Frame& frame, std::span<const Rows> sets,
                 const double* weights, double* norms);
  void prefix_norms(const Node& node, Rows rows, const Frame& frame,
                    std::span<const Prefixes> lists, double* norms);

  // Not supported: inner products of groups are not enough to score their unions.
  void group_gram(const Frame&, Rows, Rows, std::span<const double>, std::span<double>);

 private:
  double weight_of(std::int32_t i) const { return weight_.empty() ? 1.0 : weight_[i]; }
  void add_coordinate(Rows plus, Rows minus);
  void add_row(std::int32_t i);
  double total(const Frame& frame, double norm, double weight) const;
  const double* coordinates(std::int32_t i) const { return coordinates_.data() + i * n_rows_; }

  MatrixView K_;
  std::int64_t n_rows_;
  GramScorer gram_;
  std::span<const double> weight_;
  std::int64_t n_coordinates_ = 0;
  std::vector<double> coordinates_;  // n_rows_ entries for each training row
  std::vector<double> sum_;          // coordinates of a side's sum
};

}  // namespace okforest
