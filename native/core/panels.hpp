// The factor form of the outputs: K = Phi Phi^T with Phi stored in panels of a few columns, so that
// a sum over rows keeps a panel's running total in registers while it walks down the rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/lanes.hpp"
#include "core/prefixes.hpp"
#include "core/views.hpp"  // for MatrixView

namespace okforest {

// Panels lie in groups of a few, where a row's lanes are side by side: what is read of a row in one
// go is one piece of memory.
template <class L>
struct Panels {
  static constexpr std::int64_t most_in_group = 4;

  std::int64_t n_rows = 0;
  std::int64_t n_panels = 0;
  std::vector<L> lanes;  // group by group, row by row; padded with zeros

  explicit Panels(const MatrixView& phi);

  // Row i of panel p is at(p)[i * stride(p)].
  const L* at(std::int64_t p) const {
    return lanes.data() + p / most_in_group * most_in_group * n_rows + p % most_in_group;
  }
  bool far() const { return lanes.size() * sizeof(L) > kNear; }
  std::int64_t stride(std::int64_t p) const {
    return std::min(most_in_group, n_panels - p / most_in_group * most_in_group);
  }
};

// A subset of a node whose sum is asked for, and what of it has not been added yet.
struct Subset {
  std::span<const std::int32_t> rows, rest;
};

// Scores the splits of one node at a time from Phi: cost n * rank a sweep.
template <class L>
class FactorScorer {
 public:
  using Outputs = Panels<L>;

  explicit FactorScorer(const Outputs& outputs);  // which must outlive the scorer

  // Begins a tree, on training rows of these weights, which must outlive it.
  void begin(std::span<const double> weight);

  // Makes `rows` the current node and returns its total variance. Fast if nodes come depth first
  // and each has its rows within its parent's.
  double enter(std::span<const std::int32_t> rows, double total_weight);

  // The sum over the current node of w_i ||phi_i||^2: what its variance is rounded at.
  double scale() const { return scale_; }

  // Of each prefix of each list, one after the other,
  // || sum over the prefix, of w_i (phi_i - node mean) ||^2
  void prefix_norms(std::span<const Prefixes> lists, double* norms) const;

  // Of each subset, whose total weight is given, || sum over it, of w_i (phi_i - node mean) ||^2
  void subset_norms(std::span<const std::span<const std::int32_t>> subsets,
                    const double* subset_weight, double* norms);

  // Says how the current node is split, before its parts are entered: what was summed in the search
  // is not summed again.
  void split(std::span<const std::int32_t> left, std::span<const std::int32_t> right);

  // gram[g * n + h] = <sum of group g, sum of group h>, sums of w_i (phi_i - node mean) over the
  // rows of each of the n groups, whose total weights are given; row k is in group[k].
  void group_gram(std::span<const std::int32_t> rows, std::span<const std::int32_t> group,
                  std::span<const double> group_weight, std::span<double> gram) const;

  // The same of the node's rows, each a group of its own, on and below the diagonal. Only where
  // that is less work than to score a few subsets; returns whether it is.
  bool row_gram(std::span<const std::int32_t>, double*) const { return false; }

 private:
  bool find_sum(std::span<const std::int32_t> rows);
  void remember(std::span<const std::int32_t> rows);
  double measure(std::span<const std::int32_t> rows, double total_weight);

  const Outputs& outputs_;
  std::span<const double> weight_;
  bool plain_ = false;                // whether all weights are one
  std::vector<double> squared_norm_;  // ||phi_i||^2
  std::vector<L> sum_of_all_;         // over all rows, unweighted

  std::span<const std::int32_t> node_;  // the current one
  std::vector<L> sum_, mean_, rest_;    // over it, and scratch
  double scale_ = 0.0;
  double noise_ = 0.0;         // what its sum was rounded at, one sum after the other
  std::vector<Subset> tried_;  // subsets of it, and their sums one after the other
  std::vector<L> tried_sums_;

  struct Branch {
    std::span<const std::int32_t> rows;  // a part of the tree's
    std::vector<L> sum;
    double noise;
    std::span<const std::int32_t> part;  // the smaller side of its split, if that sum is known
    std::vector<L> part_sum;
  };
  std::vector<Branch> branches_;  // those that hold the current node, from the root down
  std::size_t n_branches_ = 0;
};

}  // namespace okforest
