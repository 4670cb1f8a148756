// The factor form of the outputs: K = Phi Phi^T with Phi stored in panels of a few columns, so that
// a sum over rows keeps a panel's running total in registers while it walks down the rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/views.hpp"  // for MatrixView

namespace okforest {

// Eight output columns side by side: one cache line. The alignment is spelt out because without
// AVX-512 the compiler would choose less, and a clone that has it counts on more.
struct alignas(64) Lanes {
  typedef double Vector __attribute__((vector_size(64), aligned(64)));
  static constexpr int width = 8;
  Vector v;
};

// A single output column, for scalar outputs.
struct Lane {
  static constexpr int width = 1;
  double v;
};

template <class L>
struct Panels {
  std::int64_t n_rows = 0;
  std::int64_t n_panels = 0;
  std::vector<L> lanes;  // panel by panel, row by row; padded with zeros

  explicit Panels(const MatrixView& phi);
  const L* panel(std::int64_t p) const { return lanes.data() + p * n_rows; }
};

// Scores the splits of one node at a time from Phi: cost n * rank a sweep.
template <class L>
class FactorScorer {
 public:
  using Outputs = Panels<L>;

  explicit FactorScorer(const Outputs& outputs);  // which must outlive the scorer

  // Begins a tree, on training rows of these weights, which must outlive it.
  void begin(std::span<const double> weight);

  // Makes `rows` the current node and returns its total variance.
  double enter(std::span<const std::int32_t> rows, double total_weight);

  // The sum over the current node of w_i ||phi_i||^2: what its variance is rounded at.
  double scale() const { return scale_; }

  // For each order of some of the node's rows, one after the other,
  // norms[k] = || sum over the first k + 1 rows of the order, of w_i (phi_i - node mean) ||^2
  void prefix_norms(std::span<const std::span<const std::int32_t>> orders, double* norms) const;

  // Of each subset, whose total weight is given, || sum over it, of w_i (phi_i - node mean) ||^2
  void subset_norms(std::span<const std::span<const std::int32_t>> subsets,
                    const double* subset_weight, double* norms) const;

  // gram[g * n + h] = <sum of group g, sum of group h>, sums of w_i (phi_i - node mean) over the
  // rows of each of the n groups, whose total weights are given; row k is in group[k].
  void group_gram(std::span<const std::int32_t> rows, std::span<const std::int32_t> group,
                  std::span<const double> group_weight, std::span<double> gram) const;

  // The same of the node's rows, each a group of its own, where that is less work than to score a
  // few subsets; returns whether it is.
  bool row_gram(std::span<const std::int32_t>, double*) const { return false; }

 private:
  const Outputs& outputs_;
  std::span<const double> weight_;
  bool plain_ = false;                // whether all weights are one
  std::vector<double> squared_norm_;  // ||phi_i||^2
  std::vector<L> mean_;               // of the current node
  double scale_ = 0.0;
};

}  // namespace okforest
