// The Gram form of the outputs: all scores follow from the matrix K of inner products.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/lanes.hpp"
#include "core/prefixes.hpp"
#include "core/views.hpp"  // for MatrixView

namespace okforest {

// Scores the splits of one node at a time from K. A sweep over n rows costs O(n^2). A branch that
// is much smaller than the current matrix gets a packed copy of its block. Only the blocks of the
// current branch and its ancestors are kept, which together are small compared to K.
class GramScorer {
 public:
  using Outputs = MatrixView;

  explicit GramScorer(const Outputs& gram);  // which must outlive the scorer

  // A scorer whose matrix is set later, by rebase: that of some of the n_rows training rows.
  // Training row i is row home[i] of it.
  explicit GramScorer(std::int64_t n_rows);
  void rebase(const MatrixView& gram, std::span<const std::int32_t> home);

  // Begins a tree on training rows of these weights, which must outlive it.
  void begin(std::span<const double> weight) {
    weight_ = weight;
    plain_ = std::ranges::all_of(weight, [](double w) { return w == 1.0; });
    n_bases_ = 1;
    use_base();
  }

  // Makes `rows` the current node and returns its total variance. Fast if nodes are entered depth
  // first and the rows of each are a part of its parent's.
  double enter(std::span<const std::int32_t> rows, double total_weight);

  // The sum of w_i ||phi_i||^2 over the current node: the scale of the rounding errors of its
  // variance.
  double scale() const { return scale_; }

  // For each prefix of each list, || sum over the prefix of w_i (phi_i - node mean) ||^2.
  void prefix_norms(std::span<const Prefixes> lists, double* norms);

  // For each subset, whose total weight is given, || sum over it of w_i (phi_i - node mean) ||^2.
  void subset_norms(std::span<const std::span<const std::int32_t>> subsets,
                    const double* subset_weight, double* norms);

  // gram[g * n + h] = <s_g, s_h>, where s_g is the sum of w_i (phi_i - node mean) over group g of
  // n. The total weights of the groups are given; rows[k] is in group[k].
  void group_gram(std::span<const std::int32_t> rows, std::span<const std::int32_t> group,
                  std::span<const double> group_weight, std::span<double> gram) const;

  // The same with every row of the node as a group, lower triangle only. Does nothing and returns
  // false where scoring a few subsets is less work.
  bool row_gram(std::span<const std::int32_t> rows, double* gram);

 private:
  // The Gram matrix of a branch.
  struct Base {
    const double* data = nullptr;
    std::int64_t n = 0;
    const std::int32_t* home = nullptr;  // training row -> row of the matrix
    std::span<const std::int32_t> rows;  // of the branch, a part of the tree's rows; empty: all
    std::vector<double> own_data;        // storage of `data` and `home`, except in the first base
    std::vector<std::int32_t> own_home;
  };

  const Base& base() const { return bases_[n_bases_ - 1]; }
  void use_base();
  std::int64_t place(std::int32_t i) const { return home_[i]; }
  const double* row(std::int32_t i) const { return data_ + home_[i] * width_; }
  double inner(std::int32_t i) const { return inner_[home_[i]]; }
  void find_base(std::span<const std::int32_t> rows);
  void push_block(std::span<const std::int32_t> rows);
  double measure(std::span<const std::int32_t> rows, double total_weight);
  double centre_block(std::span<const std::int32_t> rows);
  double reach_of(const double* row, const std::int32_t* place, const double* weight,
                  std::size_t n) const;
  double subset_norm(std::span<const std::int32_t> subset, double weight);
  void sum_entries(std::span<const std::int32_t> list, double* before);
  void sum_rows();

  // ||s - w m||^2 of a sum s of total weight w, from ||s||^2 and <s, m>, with m the node's mean.
  double centred(double norm, double weight, double inner) const {
    return std::max(0.0, norm - 2.0 * weight * inner + weight * weight * mean_norm_);
  }

  std::vector<Base> bases_;  // from all rows down to the current branch, then unused ones
  std::size_t n_bases_ = 1;
  const double* data_ = nullptr;  // of the last base: its matrix, row length and home
  std::int64_t width_ = 0;
  const std::int32_t* home_ = nullptr;
  std::span<const std::int32_t> rows_;  // the current node
  std::span<const double> weight_;
  bool plain_ = false;               // whether all weights are one
  std::vector<std::int32_t> place_;  // rows of the matrix of the node's rows
  std::vector<double> node_weight_;  // weights of the node's rows
  std::vector<double> inner_;        // <phi_i, node mean>, by row of the matrix
  double mean_norm_ = 0.0;           // ||node mean||^2
  double scale_ = 0.0;

  // A list whose sums are found by whole rows of the matrix, and where to write them.
  struct Longer {
    std::span<const std::int32_t> rows;
    double* before;
  };

  // Scratch memory:
  std::vector<double> before_;  // of each row of each list: see sum_entries
  std::vector<Longer> longer_;
  std::vector<std::int32_t> number_;  // training row -> its number in the node
  std::vector<Lanes> rank_, line_;    // ranks by list and number; a weighted row of the matrix
  std::vector<std::int32_t> subset_place_;
  std::vector<double> subset_weight_;
  std::vector<double> node_inner_;  // inner_ of the node's rows
};

}  // namespace okforest
