// What a fitted forest says of inputs: the leaves they reach, and their weights over the training
// rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/views.hpp"

namespace okforest {

// leaves[i * n_trees + t]: the node of tree t that row i of X ends in.
template <class Inputs>
void apply(const Inputs& X, const ForestView& forest, int n_threads,
           std::span<std::int32_t> leaves);

// A sparse matrix in compressed rows, columns ascending.
struct SparseRows {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  std::vector<double> values;
};

// Row i holds the mean over trees of the members' weights in the leaf that row i of `leaves` names,
// each leaf's summing to one. A tree whose leaf is -1 takes no part in the row's mean.
SparseRows leaf_weights(std::span<const std::int32_t> leaves, const ForestView& forest,
                        int n_threads);

// Row i holds the mean, by these weights, of the training rows' values: what multiplying the matrix
// above by `values` gives, without making it.
std::vector<double> leaf_means(std::span<const std::int32_t> leaves, const ForestView& forest,
                               const MatrixView& values, int n_threads);

// How many trees take part in a row's mean.
inline double n_trees_used(std::span<const std::int32_t> row) {
  return static_cast<double>(row.size() - std::count(row.begin(), row.end(), -1));
}

}  // namespace okforest
