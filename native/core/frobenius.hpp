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
class FrobeniusScorer {
 public:
  explicit FrobeniusScorer(const MatrixView& gram);  // not centred; must outlive the scorer

  void begin(std::span<const double> weight);
  double enter(std::span<const std::int32_t> rows, double total_weight);
  double scale() const { return gram_.scale(); }
  void prefix_norms(std::span<const Prefixes> lists, double* norms);
  void subset_norms(std::span<const std::span<const std::int32_t>> subsets,
                    const double* subset_weight, double* norms);
  bool row_gram(std::span<const std::int32_t>, double*) { return false; }

  // Not supported: inner products of groups are not enough to score their unions.
  void group_gram(std::span<const std::int32_t>, std::span<const std::int32_t>,
                  std::span<const double>, std::span<double>) const {}

  // Records that a node has been split into these sides.
  void split(std::span<const std::int32_t> left, std::span<const std::int32_t> right);

 private:
  void add_coordinate(std::span<const std::int32_t> plus, std::span<const std::int32_t> minus);
  void add_row(std::int32_t i);
  double total(double norm, double weight) const;
  const double* coordinates(std::int32_t i) const { return coordinates_.data() + i * n_rows_; }

  MatrixView K_;
  std::int64_t n_rows_;
  GramScorer gram_;
  std::span<const double> weight_;
  double total_weight_ = 0.0;  // of the current node
  std::int64_t n_coordinates_ = 0;
  std::vector<double> coordinates_;  // n_rows_ entries for each training row
  std::vector<double> mean_, sum_;   // coordinates of the current node's mean, and of a side's sum
};

}  // namespace okforest
