// The Frobenius rule: splits that bring the kernel predicted between training inputs nearest to the
// output kernel, instead of each leaf's outputs to their mean.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/gram.hpp"

namespace okforest {

// A tree predicts, between two training rows, the mean of K over their leaves; with M the sum over
// leaves of W mu mu^T, the error is ||K||^2 - ||M||^2. A split of weights W_L, W_R and means that
// differ by delta adds c delta delta^T to M, c being W_L W_R / W, and so reduces the error by
//   2 c delta^T M delta + c^2 ||delta||^4.
// Every split gives rows one more coordinate, sqrt(c) <delta, phi_i>, and delta^T M delta is the
// sum of squared differences in these. With s = c delta the side's sum, what this scorer calls a
// norm is 2 s^T M s + ||s||^4 / c: over c, as the splitter has it, that is the reduction.
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

  // Not of this rule: a union of groups has no score by their inner products alone.
  void group_gram(std::span<const std::int32_t>, std::span<const std::int32_t>,
                  std::span<const double>, std::span<double>) const {}

  // Takes note that a node has been divided into these.
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
  std::vector<double> coordinates_;  // training row by training row
  std::vector<double> mean_, sum_;   // of the current node; of a side
};

}  // namespace okforest
