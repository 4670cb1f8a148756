#include <algorithm>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "core/predict.hpp"

namespace okforest {

namespace {

struct Columns {
  std::int64_t begin, end;
};

// Adds to row i of `sums` share[i] times the mean of some columns of `values` over the members of
// its leaf in one tree. Each leaf's mean is computed once, however many rows reach it.
void add_tree_means(std::int64_t tree, std::span<const std::int32_t> leaves,
                    const ForestView& forest, const MatrixView& values, Columns columns,
                    std::span<const double> share, std::span<double> sums, Pace& pace) {
  const std::int64_t n_trees = forest.n_trees();
  std::vector<std::pair<std::int32_t, std::int64_t>> by_leaf;
  for (std::size_t i = 0; i < share.size(); ++i) {
    const std::int32_t leaf = leaves[i * n_trees + tree];
    if (leaf >= 0) by_leaf.push_back({leaf, static_cast<std::int64_t>(i)});
  }
  std::sort(by_leaf.begin(), by_leaf.end());
  std::vector<double> mean(static_cast<std::size_t>(columns.end - columns.begin));
  std::int32_t current = -1;
  for (const auto& [leaf, i] : by_leaf) {
    if (leaf != current) {
      current = leaf;
      std::fill(mean.begin(), mean.end(), 0.0);
      forest.for_members(tree, leaf, [&](std::int32_t member, double part) {
        const double* row = values.row(member) + columns.begin;
        for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += part * row[c];
      });
      pace.advance(forest.n_members(tree, leaf) * (columns.end - columns.begin));
    }
    double* sum = &sums[i * values.n_cols + columns.begin];
    for (std::size_t c = 0; c < mean.size(); ++c) sum[c] += share[i] * mean[c];
    pace.advance(columns.end - columns.begin);
  }
}

}  // namespace

std::vector<double> leaf_means(std::span<const std::int32_t> leaves, const ForestView& forest,
                               const MatrixView& values, int n_threads, Watch& watch) {
  const std::int64_t n_trees = forest.n_trees();
  const auto n_rows = static_cast<std::int64_t>(leaves.size()) / std::max<std::int64_t>(n_trees, 1);
  std::vector<double> share(static_cast<std::size_t>(n_rows));
  for (std::int64_t i = 0; i < n_rows; ++i) {
    share[i] = 1.0 / n_trees_used(leaves.subspan(i * n_trees, n_trees));
  }
  std::vector<double> sums(static_cast<std::size_t>(n_rows * values.n_cols), 0.0);
  // Threads divide the columns, so that every entry is summed in the order of the trees.
  const std::int64_t n_parts = std::min<std::int64_t>(n_threads, values.n_cols);
  parallel_for(n_parts, n_threads, watch, [&](std::int64_t part, Pace& pace) {
    const Columns columns{part * values.n_cols / n_parts, (part + 1) * values.n_cols / n_parts};
    for (std::int64_t t = 0; t < n_trees; ++t) {
      add_tree_means(t, leaves, forest, values, columns, share, sums, pace);
    }
  });
  return sums;
}

}  // namespace okforest
