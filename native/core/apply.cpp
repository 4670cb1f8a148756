#include <algorithm>

#include "core/parallel.hpp"
#include "core/predict.hpp"

namespace okforest {

template <class Inputs>
void apply(const Inputs& X, const ForestView& forest, int n_threads,
           std::span<std::int32_t> leaves) {
  constexpr std::int64_t block = 256;  // rows that go down one tree before the next
  const std::int64_t n_trees = forest.n_trees();
  parallel_for((X.n_rows + block - 1) / block, n_threads, [&](std::int64_t task) {
    const std::int64_t end = std::min(X.n_rows, (task + 1) * block);
    for (std::int64_t t = 0; t < n_trees; ++t) {
      const std::int64_t root = forest.node_offsets[t];
      for (std::int64_t i = task * block; i < end; ++i) {
        std::int32_t node = 0;
        for (std::int32_t left; (left = forest.left[root + node]) >= 0;) {
          const double x = X(i, forest.feature[root + node]);
          node = left + !forest.test(t, node).left(x);
        }
        leaves[i * n_trees + t] = node;
      }
    }
  });
}

template void apply(const DenseInputs<float>&, const ForestView&, int, std::span<std::int32_t>);
template void apply(const DenseInputs<double>&, const ForestView&, int, std::span<std::int32_t>);
template void apply(const RowInputs<float>&, const ForestView&, int, std::span<std::int32_t>);
template void apply(const RowInputs<double>&, const ForestView&, int, std::span<std::int32_t>);

}  // namespace okforest
