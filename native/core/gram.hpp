// The Gram form of the outputs: every score from inner products K alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/views.hpp"  // for MatrixView

namespace okforest {

// Scores the splits of one node at a time from K: cost n^2 a sweep. A node of at most three
// quarters of the rows works on its own block of K, packed; a larger one on whole rows of K, so
// that the copy never takes much more than half of K.
class GramScorer {
 public:
  using Outputs = MatrixView;

  explicit GramScorer(const Outputs& gram);  // which must outlive the scorer

  // A scorer of so many training rows whose matrix comes later: that of some of them, at their
  // places `home` in it.
  explicit GramScorer(std::int64_t n_rows);
  void rebase(const MatrixView& gram, std::span<const std::int32_t> home);

  // Begins a tree, on training rows of these weights, which must outlive it.
  void begin(std::span<const double> weight) { weight_ = weight; }

  // Makes `rows` the current node and returns its total variance.
  double enter(std::span<const std::int32_t> rows, double total_weight);

  // The sum over the current node of w_i ||phi_i||^2: what its variance is rounded at.
  double scale() const { return scale_; }

  // norms[k] = || sum over the first k + 1 rows of order, of w_i (phi_i - node mean) ||^2
  void prefix_norms(std::span<const std::int32_t> order, std::span<double> norms);

  // || sum over the subset, of w_i (phi_i - node mean) ||^2
  double subset_norm(std::span<const std::int32_t> subset);

  // gram[g * n + h] = <sum of group g, sum of group h>, sums of w_i (phi_i - node mean) over the
  // rows of each of the n groups, whose total weights are given; row k is in group[k].
  void group_gram(std::span<const std::int32_t> rows, std::span<const std::int32_t> group,
                  std::span<const double> group_weight, std::span<double> gram) const;

 private:
  const double* row(std::int32_t i) const { return base_ + place_[i] * width_; }
  std::int32_t home(std::int32_t i) const { return home_.empty() ? i : home_[i]; }
  void place(std::span<const std::int32_t> rows);
  double centre_block(std::span<const std::int32_t> rows);
  double centred(double norm, double weight, double inner) const;

  MatrixView gram_;
  std::span<const std::int32_t> home_;  // training row -> row of gram_; empty: the same
  std::span<const double> weight_;
  const double* base_ = nullptr;       // the current node's rows: K itself or its block
  std::int64_t width_ = 0;             // and the length of each
  std::vector<std::int32_t> place_;    // training row -> its place in base_, as row and as column
  std::vector<double> placed_weight_;  // place -> weight; zero where the node has no row
  std::vector<double> block_;
  std::vector<double> inner_;  // training row i of the node -> <phi_i, node mean>
  double mean_norm_ = 0.0;     // ||node mean||^2
  double scale_ = 0.0;

  // Scratch: <phi_j, sum so far> of a sweep; places and weights of a subset.
  std::vector<double> reach_;
  std::vector<std::int32_t> subset_place_;
  std::vector<double> subset_weight_;
};

}  // namespace okforest
