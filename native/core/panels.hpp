// The factor form of the outputs: K = Phi Phi^T, with Phi stored in panels of a few columns, so
// that the running totals of a sum over rows stay in registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/lanes.hpp"
#include "core/prefixes.hpp"
#include "core/views.hpp"  // for MatrixView
#include "core/watch.hpp"

namespace okforest {

// Panels are stored in groups of up to four. Within a group, the lanes of a row are contiguous,
// since they are read together.
template <class L>
struct Panels {
  static constexpr std::int64_t most_in_group = 4;

  std::int64_t n_rows = 0;
  std::int64_t n_panels = 0;
  std::vector<L> lanes;  // group by group, row by row; padded with zeros

  Panels(const MatrixView& phi, Pace& pace);

  // Row i of panel p is at(p)[i * stride(p)].
  const L* at(std::int64_t p) const {
    return lanes.data() + p / most_in_group * most_in_group * n_rows + p % most_in_group;
  }
  bool exceeds_cache() const { return lanes.size() * sizeof(L) > kCacheSize; }
  std::int64_t stride(std::int64_t p) const {
    return std::min(most_in_group, n_panels - p / most_in_group * most_in_group);
  }
};

// A subset of a node whose sum is being computed, and its rows that have not been added yet.
struct Subset {
  std::span<const std::int32_t> rows, rest;
};

// Scores the splits of one node at a time from Phi. A sweep over n rows costs O(n * rank).
template <class L>
class FactorScorer {
 public:
  using Outputs = Panels<L>;

  explicit FactorScorer(const Outputs& outputs);  // which must outlive the scorer

  // Begins a tree on training rows of these weights, which must outlive it.
  void begin(std::span<const double> weight);

  // Makes `rows` the current node and returns its total variance. Fast if nodes are entered depth
  // first and the rows of each are a part of its parent's.
  double enter(std::span<const std::int32_t> rows, double total_weight);

  // The sum of w_i ||phi_i||^2 over the current node: the scale of the rounding errors of its
  // variance.
  double scale() const { return scale_; }

  // For each prefix of each list, || sum over the prefix of w_i (phi_i - node mean) ||^2.
  void prefix_norms(std::span<const Prefixes> lists, double* norms) const;

  // For each subset, whose total weight is given, || sum over it of w_i (phi_i - node mean) ||^2.
  void subset_norms(std::span<const std::span<const std::int32_t>> subsets,
                    const double* subset_weight, double* norms);

  // Records how the current node is split, before its children are entered: sums found in the
  // search are not computed again.
  void split(std::span<const std::int32_t> left, std::span<const std::int32_t> right);

  // gram[g * n + h] = <s_g, s_h>, where s_g is the sum of w_i (phi_i - node mean) over group g of
  // n. The total weights of the groups are given; rows[k] is in group[k].
  void group_gram(std::span<const std::int32_t> rows, std::span<const std::int32_t> group,
                  std::span<const double> group_weight, std::span<double> gram) const;

  // The same with every row of the node as a group, lower triangle only. Does nothing and returns
  // false where scoring a few subsets is less work.
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

  std::span<const std::int32_t> node_;  // the current node
  std::vector<L> sum_, mean_, rest_;    // sum and mean over it; scratch
  double scale_ = 0.0;
  double noise_ = 0.0;         // scale of the rounding errors of its sum
  std::vector<Subset> tried_;  // subsets of it that were scored last, and their sums
  std::vector<L> tried_sums_;

  struct Branch {
    std::span<const std::int32_t> rows;  // a part of the tree's rows
    std::vector<L> sum;
    double noise;
    std::span<const std::int32_t> part;  // the smaller side of its split, if that sum is known
    std::vector<L> part_sum;
  };
  std::vector<Branch> branches_;  // that contain the current node, from the root down
  std::size_t n_branches_ = 0;
};

}  // namespace okforest
