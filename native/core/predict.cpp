#include "core/predict.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/parallel.hpp"

namespace okforest {

namespace {

constexpr std::int64_t kRowsOfTask = 256;

// Packing a tree pays off if it has at most this many nodes for each row that walks it.
constexpr std::int64_t kNodesPerRow = 64;

// A numeric test in 16 bytes. A leaf is its own left child, and every value goes left.
struct PackedNode {
  double threshold;
  std::int32_t left;
  std::int32_t feature;  // as ~feature if missing values go left

  template <class Row>
  std::int32_t next(const Row& row) const {
    const std::int32_t sign = feature >> 31;  // -1 if missing values go left
    const double x = row(feature ^ sign);
    // NaN is neither at most the threshold nor above it. Without branches.
    return left + static_cast<std::int32_t>((x > threshold) | (!(x <= threshold) & (sign == 0)));
  }
};

// Packs a tree; returns false if it has a categorical test.
bool pack(const ForestView& forest, std::int64_t tree, std::vector<PackedNode>& nodes) {
  const std::int64_t root = forest.node_offsets[tree];
  const auto n = static_cast<std::int32_t>(forest.node_offsets[tree + 1] - root);
  nodes.resize(static_cast<std::size_t>(n));
  for (std::int32_t k = 0; k < n; ++k) {
    const std::int32_t feature = forest.feature[root + k];
    if (forest.left[root + k] < 0) {
      nodes[k] = {std::numeric_limits<double>::infinity(), k, ~0};
      continue;
    }
    if (forest.subset[root + k] >= 0) return false;
    nodes[k] = {forest.threshold[root + k], forest.left[root + k],
                forest.missing_left[root + k] ? ~feature : feature};
  }
  return true;
}

// Walks n rows from the root to a leaf together: their steps are independent, so that memory
// latencies overlap. Returns the number of steps.
template <std::int64_t n, class Inputs>
std::int64_t walk_together(const Inputs& X, const PackedNode* nodes, std::int64_t first,
                           std::int64_t n_trees, std::int32_t* leaves) {
  std::int32_t node[n] = {};
  std::int64_t n_steps = 0;
  for (std::int32_t moved = 1; moved != 0; n_steps += n) {
    moved = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      const auto next = nodes[node[k]].next([&](std::int32_t f) { return X(first + k, f); });
      moved |= next ^ node[k];
      node[k] = next;
    }
  }
  for (std::int64_t k = 0; k < n; ++k) leaves[(first + k) * n_trees] = node[k];
  return n_steps;
}

template <class Inputs>
std::int64_t walk_packed(const Inputs& X, const PackedNode* nodes, std::int64_t begin,
                         std::int64_t end, std::int64_t n_trees, std::int32_t* leaves) {
  std::int64_t n_steps = 0, i = begin;
  for (; i + 8 <= end; i += 8) n_steps += walk_together<8>(X, nodes, i, n_trees, leaves);
  for (; i < end; ++i) n_steps += walk_together<1>(X, nodes, i, n_trees, leaves);
  return n_steps;
}

template <class Inputs>
std::int64_t walk(const Inputs& X, const ForestView& forest, std::int64_t tree, std::int64_t begin,
                  std::int64_t end, std::int32_t* leaves) {
  const std::int64_t root = forest.node_offsets[tree];
  std::int64_t n_steps = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    std::int32_t node = 0;
    for (std::int32_t left; (left = forest.left[root + node]) >= 0; ++n_steps) {
      node = left + !forest.test(tree, node).left(X(i, forest.feature[root + node]));
    }
    leaves[i * forest.n_trees()] = node;
    ++n_steps;
  }
  return n_steps;
}

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

template <class Inputs>
void apply(const Inputs& X, const ForestView& forest, int n_threads, Watch& watch,
           std::span<std::int32_t> leaves) {
  // Rows per pass through a tree: as many as threads allow, while they stay in cache. Large trees
  // are packed for more rows at a time.
  constexpr std::int64_t kFewestRows = 64, kMostRows = 1024, kMostOfLarge = 1 << 16;
  const std::int64_t n_trees = forest.n_trees();
  std::int64_t largest = 0;
  for (std::int64_t t = 0; t < n_trees; ++t) {
    largest = std::max(largest, forest.node_offsets[t + 1] - forest.node_offsets[t]);
  }
  const std::int64_t most = largest <= 8 * kMostRows ? kMostRows : kMostOfLarge;
  const std::int64_t block = std::clamp(X.n_rows / n_threads, kFewestRows, most);
  const std::int64_t n_blocks = (X.n_rows + block - 1) / block;
  parallel_for(n_blocks, n_threads, watch, [&](std::int64_t task, Pace& pace) {
    const std::int64_t begin = task * block, end = std::min(X.n_rows, begin + block);
    std::vector<PackedNode> nodes;
    for (std::int64_t t = 0; t < n_trees; ++t) {
      const std::int64_t n_nodes = forest.node_offsets[t + 1] - forest.node_offsets[t];
      // A packed leaf reads the first feature, if there is one.
      const bool many = kNodesPerRow * (end - begin) >= n_nodes && X.n_cols > 0;
      const bool packed = many && pack(forest, t, nodes);
      for (std::int64_t first = begin; first < end; first += kMostRows) {
        const std::int64_t last = std::min(end, first + kMostRows);
        pace.advance(packed ? walk_packed(X, nodes.data(), first, last, n_trees, leaves.data() + t)
                            : walk(X, forest, t, first, last, leaves.data() + t));
      }
    }
  });
}

SparseRows leaf_weights(std::span<const std::int32_t> leaves, const ForestView& forest,
                        int n_threads, Watch& watch) {
  const std::int64_t n_trees = forest.n_trees();
  const auto n_rows = static_cast<std::int64_t>(leaves.size()) / std::max<std::int64_t>(n_trees, 1);
  const std::int64_t n_blocks = (n_rows + kRowsOfTask - 1) / kRowsOfTask;

  SparseRows result;
  result.offsets.assign(static_cast<std::size_t>(n_rows + 1), 0);
  std::vector<SparseRows> parts(static_cast<std::size_t>(n_blocks));
  parallel_for(n_blocks, n_threads, watch, [&](std::int64_t task, Pace& pace) {
    SparseRows& part = parts[task];
    std::vector<double> sum(forest.row_weight.size(), 0.0);
    std::vector<std::int32_t> touched;
    const std::int64_t end = std::min(n_rows, (task + 1) * kRowsOfTask);
    for (std::int64_t i = task * kRowsOfTask; i < end; ++i) {
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

#define OKFOREST_INSTANTIATE(Inputs) \
  template void apply(const Inputs&, const ForestView&, int, Watch&, std::span<std::int32_t>)
OKFOREST_INSTANTIATE(DenseInputs<std::uint8_t>);
OKFOREST_INSTANTIATE(DenseInputs<float>);
OKFOREST_INSTANTIATE(DenseInputs<double>);
OKFOREST_INSTANTIATE(RowInputs<float>);
OKFOREST_INSTANTIATE(RowInputs<double>);
#undef OKFOREST_INSTANTIATE

}  // namespace okforest
