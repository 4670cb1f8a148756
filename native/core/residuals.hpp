// What a round of boosting leaves: residuals less the means of a tree's leaves, as vectors and as a
// Gram matrix, in place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace okforest {

// The leaves of one tree: their members with weights that sum to one in each leaf, and the leaf
// that every row reaches, also rows that are no members.
struct LeavesView {
  std::span<const std::int64_t> offsets;  // n_leaves + 1: where each leaf's members begin
  std::span<const std::int32_t> members;
  std::span<const double> weights;       // per member
  std::span<const std::int32_t> places;  // per row
  double scale;                          // what means are multiplied by

  std::int64_t n_leaves() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// A row-major matrix to change.
struct MutableMatrix {
  double* data;
  std::int64_t n_rows;
  std::int64_t n_cols;

  double* row(std::int64_t i) const { return data + i * n_cols; }
};

// Subtracts from each row its leaf's mean, times the scale; returns these, of shape (n_leaves,
// n_cols).
std::vector<double> subtract_means(const MutableMatrix& values, const LeavesView& leaves,
                                   int n_threads);

// The same for rows that are known by their inner products: turns these into those of what is left.
void subtract_means_from_gram(const MutableMatrix& gram, const LeavesView& leaves, int n_threads);

}  // namespace okforest
