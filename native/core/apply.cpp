#include <algorithm>

#include "core/parallel.hpp"
#include "core/predict.hpp"

namespace okforest {

template <class Inputs>
void apply(const Inputs& X, const ForestView& forest, int n_threads, Watch& watch,
           std::span<std::int32_t> leaves) {
  constexpr std::int64_t block = 256;  // rows per pass through a tree, which stays in cache
  const std::int64_t n_trees = forest.n_trees();
  const std::int64_t n_blocks = (X.n_rows + block - 1) / block;
  parallel_for(n_blocks, n_threads, watch, [&](std::int64_t task, Pace& pace) {
    const std::int64_t begin = task * block, end = std::min(X.n_rows, begin + block);
    for (std::int64_t t = 0; t < n_trees; ++t) {
      const std::int64_t root = forest.node_offsets[t];
      for (std::int64_t i = begin; i < end; ++i) {
        std::int32_t node = 0;
        std::int64_t n_steps = 1;
        for (std::int32_t left; (left = forest.left[root + node]) >= 0;) {
          const double x = X(i, forest.feature[root + node]);
          node = left + !forest.test(t, node).left(x);
          ++n_steps;
        }
        leaves[i * n_trees + t] = node;
        pace.advance(n_steps);
      }
    }
  });
}

#define OKFOREST_INSTANTIATE(Inputs) \
  template void apply(const Inputs&, const ForestView&, int, Watch&, std::span<std::int32_t>)
OKFOREST_INSTANTIATE(DenseInputs<float>);
OKFOREST_INSTANTIATE(DenseInputs<double>);
OKFOREST_INSTANTIATE(RowInputs<float>);
OKFOREST_INSTANTIATE(RowInputs<double>);
#undef OKFOREST_INSTANTIATE

}  // namespace okforest
