#include <algorithm>

#include "core/parallel.hpp"
#include "core/predict.hpp"

namespace okforest {

SparseRows leaf_weights(std::span<const std::int32_t> leaves, const ForestView& forest,
                        int n_threads, Watch& watch) {
  constexpr std::int64_t block = 256;
  const std::int64_t n_trees = forest.n_trees();
  const auto n_rows = static_cast<std::int64_t>(leaves.size()) / std::max<std::int64_t>(n_trees, 1);
  const std::int64_t n_blocks = (n_rows + block - 1) / block;

  SparseRows result;
  result.offsets.assign(static_cast<std::size_t>(n_rows + 1), 0);
  std::vector<SparseRows> parts(static_cast<std::size_t>(n_blocks));
  parallel_for(n_blocks, n_threads, watch, [&](std::int64_t task, Pace& pace) {
    SparseRows& part = parts[task];
    std::vector<double> sum(forest.row_weight.size(), 0.0);
    std::vector<std::int32_t> touched;
    const std::int64_t end = std::min(n_rows, (task + 1) * block);
    for (std::int64_t i = task * block; i < end; ++i) {
      const auto row = leaves.subspan(i * n_trees, n_trees);
      const double share = 1.0 / n_trees_used(row);
      for (std::int64_t t = 0; t < n_trees; ++t) {
        if (row[t] < 0) continue;
        forest.for_members(t, row[t], [&](std::int32_t member, double part_of_leaf) {
          if (sum[member] == 0.0) touched.push_back(member);
          sum[member] += share * part_of_leaf;
        });
        pace.advance(forest.n_members(t, row[t]));
      }
      std::sort(touched.begin(), touched.end());
      for (const auto m : touched) {
        part.columns.push_back(m);
        part.values.push_back(sum[m]);
        sum[m] = 0.0;
      }
      result.offsets[i + 1] = static_cast<std::int64_t>(touched.size());
      touched.clear();
    }
  });

  for (std::int64_t i = 0; i < n_rows; ++i) result.offsets[i + 1] += result.offsets[i];
  result.columns.reserve(static_cast<std::size_t>(result.offsets.back()));
  result.values.reserve(static_cast<std::size_t>(result.offsets.back()));
  Pace pace(watch);
  for (SparseRows& part : parts) {
    pace.advance(static_cast<std::int64_t>(part.columns.size()));
    result.columns.insert(result.columns.end(), part.columns.begin(), part.columns.end());
    result.values.insert(result.values.end(), part.values.begin(), part.values.end());
    part = {};
  }
  return result;
}

}  // namespace okforest
