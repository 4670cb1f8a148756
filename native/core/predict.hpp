// Prediction: the leaves that inputs reach, and their weights over the training rows. All functions
// throw Stopped if the watch stops them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/views.hpp"
#include "core/watch.hpp"

namespace okforest {

// leaves[i * n_trees + t]: the leaf of tree t that row i of X reaches.
template <class Inputs>
std::vector<std::int32_t> apply(const Inputs& X, const ForestView& forest, int n_threads,
                                Watch& watch);

// The number of leaves, without those that are -1, and of their members.
struct LeafCounts {
  std::int64_t n_leaves = 0, n_members = 0;
};
LeafCounts count_members(std::span<const std::int32_t> leaves, const ForestView& forest,
                         Watch& watch);

// A sparse matrix in compressed rows, columns ascending.
struct SparseRows {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  std::vector<double> values;
};

// Row i is the mean over trees of the weights of the members of its leaf, which sum to one. A tree
// whose leaf is -1 is left out of the mean.
SparseRows leaf_weights(std::span<const std::int32_t> leaves, const ForestView& forest,
                        int n_threads, Watch& watch);

// Row i is the mean of the training rows' values with these weights: the product of the matrix
// above and `values`, without computing the matrix.
std::vector<double> leaf_means(std::span<const std::int32_t> leaves, const ForestView& forest,
                               const MatrixView& values, int n_threads, Watch& watch);

// The means of the values of all leaves, computed once. The vector of leaf k, numbered among all
// nodes, is row places[k] of the means, or, if its members are equal, row ~places[k] of the values.
struct LeafTable {
  std::vector<std::int32_t> places;
  std::vector<double> means;
};

// The table; empty if it has more than this number of means.
LeafTable leaf_table(const ForestView& forest, const MatrixView& values, std::int64_t most_means,
                     int n_threads, Watch& watch);

// Such a table, as the caller keeps it.
struct LeafVectors {
  std::span<const std::int32_t> places;
  MatrixView means, values;
};

// Row i is start + factor * the sum over trees of the vectors of the leaves that row i of X
// reaches, summed in the order of the trees.
template <class Inputs>
std::vector<double> leaf_sums(const Inputs& X, const ForestView& forest, const LeafVectors& vectors,
                              std::span<const double> start, double factor, int n_threads,
                              Watch& watch);

}  // namespace okforest
