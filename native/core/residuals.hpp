// A round of boosting: subtracts the means of a tree's leaves from the residuals, given as vectors
// or as a Gram matrix, in place; and the means of all rounds as weights. If the watch stops them,
// functions throw Stopped and leave a matrix partly modified.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/views.hpp"
#include "core/watch.hpp"

namespace okforest {

// The leaves of one tree: the members of each, with weights that sum to one, and the leaf that
// every row reaches, whether it is a member or not.
struct LeavesView {
  std::span<const std::int64_t> offsets;  // n_leaves + 1: where each leaf's members begin
  std::span<const std::int32_t> members;
  std::span<const double> weights;       // per member
  std::span<const std::int32_t> places;  // per row
  double scale;                          // factor of the means

  std::int64_t n_leaves() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// Subtracts the scaled mean of its leaf from each row. Returns the scaled means, of shape
// (n_leaves, n_cols).
std::vector<double> subtract_means(const MutableMatrix& values, const LeavesView& leaves,
                                   int n_threads, Watch& watch);

// The same for rows given by their Gram matrix, which becomes that of the new residuals. Returns
// the sums of its rows.
std::vector<double> subtract_means_from_gram(const MutableMatrix& gram, const LeavesView& leaves,
                                             int n_threads, Watch& watch);

// Subtracts the means of all trees, one after the other, from the weights of the residuals over the
// training outputs, which are I - 1 initial^T at first. No row is a member twice. Returns the
// scaled means, of shape (n_leaves of all trees, n).
std::vector<double> leaf_coefficients(std::span<const LeavesView> trees,
                                      std::span<const double> initial, int n_threads, Watch& watch);

// The leaf that each training row reaches in each tree: numbers in the order of the leaves'
// members, of shape (n_trees, n_train).
template <class Number>
struct TrainingLeaves {
  const Number* numbers;
  std::int64_t n_train;
};

// The weights of predictions over the training outputs, of shape (n_predictions, n_train), pulled
// back from the last round to the first: the weight of a residual goes to the output, and less the
// shares of all that its leaf takes, to the members of its leaf. Predictions are given by the
// numbers of their leaves in the first trees, of shape (n_rounds, n_predictions).
template <class Number>
std::vector<double> pull_back(const ForestView& forest, const TrainingLeaves<Number>& reached,
                              std::span<const double> scales, std::span<const double> initial,
                              const MatrixOf<const std::int32_t>& leaves, int n_threads,
                              Watch& watch);

}  // namespace okforest
