// The Gram form of the outputs: every score from inner products K alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/lanes.hpp"
#include "core/prefixes.hpp"
#include "core/views.hpp"  // for MatrixView

namespace okforest {

// Scores the splits of one node at a time from K: cost n^2 a sweep. A branch much smaller than the
// matrix at hand gets its own block of it, packed; blocks are kept down to the current branch, so
// that together they take a small part of K.
class GramScorer {
 public:
  using Outputs = MatrixView;

  explicit GramScorer(const Outputs& gram);  // which must outlive the scorer

  // A scorer of so many training rows whose matrix comes later: that of some of them, at their
  // places `home` in it.
  explicit GramScorer(std::int64_t n_rows);
  void rebase(const MatrixView& gram, std::span<const std::int32_t> home);

  // Begins a tree, on training rows of these weights, which must outlive it.
  void begin(std::span<const double> weight) {
    weight_ = weight;
    plain_ = std::ranges::all_of(weight, [](double w) { return w == 1.0; });
    n_bases_ = 1;
    use_base();
  }

  // Makes `rows` the current node and returns its total variance. Fast if nodes come depth first
  // and each has its rows within its parent's.
  double enter(std::span<const std::int32_t> rows, double total_weight);

  // The sum over the current node of w_i ||phi_i||^2: what its variance is rounded at.
  double scale() const { return scale_; }

  // Of each prefix of each list, one after the other,
  // || sum over the prefix, of w_i (phi_i - node mean) ||^2
  void prefix_norms(std::span<const Prefixes> lists, double* norms);

  // Of each subset, whose total weight is given, || sum over it, of w_i (phi_i - node mean) ||^2
  void subset_norms(std::span<const std::span<const std::int32_t>> subsets,
                    const double* subset_weight, double* norms);

  // gram[g * n + h] = <sum of group g, sum of group h>, sums of w_i (phi_i - node mean) over the
  // rows of each of the n groups, whose total weights are given; row k is in group[k].
  void group_gram(std::span<const std::int32_t> rows, std::span<const std::int32_t> group,
                  std::span<const double> group_weight, std::span<double> gram) const;

  // The same of the node's rows, each a group of its own, on and below the diagonal. Only where
  // that is less work than to score a few subsets; returns whether it is.
  bool row_gram(std::span<const std::int32_t> rows, double* gram);

 private:
  // A matrix to score from, of the rows of a branch.
  struct Base {
    const double* data = nullptr;
    std::int64_t n = 0;
    const std::int32_t* home = nullptr;  // training row -> row of the matrix
    std::span<const std::int32_t> rows;  // the branch, as a part of the tree's rows; empty: all
    std::vector<double> own_data;        // what `data` and `home` point to, but for the first base
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

  // ||s - w m||^2 of a sum s of total weight w, from ||s||^2 and <s, m>, m being the node's mean.
  double centred(double norm, double weight, double inner) const {
    return std::max(0.0, norm - 2.0 * weight * inner + weight * weight * mean_norm_);
  }

  std::vector<Base> bases_;  // from all rows down to the current branch; then those used before
  std::size_t n_bases_ = 1;
  const double* data_ = nullptr;  // the last base: its matrix, the length of a row, and `home`
  std::int64_t width_ = 0;
  const std::int32_t* home_ = nullptr;
  std::span<const std::int32_t> rows_;  // the current node
  std::span<const double> weight_;
  bool plain_ = false;               // whether all weights are one
  std::vector<std::int32_t> place_;  // of the node's rows, one after the other
  std::vector<double> node_weight_;  // and their weights
  std::vector<double> inner_;        // place of row i of the node -> <phi_i, node mean>
  double mean_norm_ = 0.0;           // ||node mean||^2
  double scale_ = 0.0;

  struct Longer {
    std::span<const std::int32_t> rows;
    double* before;
  };

  // Scratch: of a sweep, what comes before each row of each list; the longer lists; each row's
  // number in the node; by list and number, a row's rank; a row of the matrix. Of a subset, places
  // and weights. Of the node's rows, what inner_ has at their places.
  std::vector<double> before_;
  std::vector<Longer> longer_;
  std::vector<std::int32_t> number_;
  std::vector<Lanes> rank_, line_;
  std::vector<std::int32_t> subset_place_;
  std::vector<double> subset_weight_;
  std::vector<double> node_inner_;
};

}  // namespace okforest
