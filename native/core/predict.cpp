#include "core/predict.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/parallel.hpp"

namespace okforest {

namespace {

constexpr std::int64_t kRowsOfTask = 128;

// Rows that walk a tree while they stay in cache.
constexpr std::int64_t kMostRows = 1024;

// Packing a tree pays off if it has at most this many nodes for each row that walks it.
constexpr std::int64_t kNodesPerRow = 64;

// Rows that walk a tree together, at two steps each between checks whether all have arrived.
constexpr std::int64_t kRowsTogether = 8;

// Trees that a row walks together if there are few rows.
constexpr std::int64_t kTreesTogether = 16;

// The bits of a number as an integer.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// The bits of the largest number of type T that is at most x: a value of type T is at most x if and
// only if it is at most this number.
template <class T>
Bits<T> round_down(double x) {
  const T nearest = static_cast<T>(x);
  const auto bits = std::bit_cast<Bits<T>>(nearest);
  const Bits<T> up = (bits >> (8 * sizeof(T) - 1)) | 1;  // towards zero, if it is -1
  return bits - up * static_cast<Bits<T>>(nearest > x);
}

// A numeric test. A leaf is its own left child, and every value goes left.
template <class T>
struct PackedNode {
  T threshold;
  std::int32_t left;
  std::int32_t feature;  // as ~feature if missing values go left, where there are any

  // The child for a row, given as a function of the feature. Without branches.
  template <bool has_missing, class Row>
  std::int32_t next(const Row& row) const {
    if constexpr (!has_missing) {
      return left + static_cast<std::int32_t>(!(row(feature) <= threshold));
    } else {
      const std::int32_t sign = feature >> 31;  // -1 if missing values go left
      const T x = row(feature ^ sign);
      // NaN is neither at most the threshold nor above it.
      return left + static_cast<std::int32_t>((x > threshold) | (!(x <= threshold) & (sign == 0)));
    }
  }
};

// Packs a tree; returns false if it has a categorical test.
template <bool has_missing, class T>
bool pack(const ForestView& forest, std::int64_t tree, std::vector<PackedNode<T>>& nodes) {
  const std::int64_t root = forest.node_offsets[tree];
  const auto n = static_cast<std::int32_t>(forest.node_offsets[tree + 1] - root);
  nodes.resize(static_cast<std::size_t>(n));
  constexpr auto infinity = std::bit_cast<Bits<T>>(std::numeric_limits<T>::infinity());
  std::int32_t signs = -1;  // of the subsets: negative if all are numeric
  for (std::int32_t k = 0; k < n; ++k) {
    // Leaves come in any order: selected by masks, without branches.
    const std::int32_t left = forest.left[root + k], leaf = left >> 31;
    const Bits<T> threshold = round_down<T>(forest.threshold[root + k]);
    const std::int32_t feature = forest.feature[root + k] & ~leaf;
    const std::int32_t flip =
        has_missing ? leaf | -static_cast<std::int32_t>(forest.missing_left[root + k]) : 0;
    signs &= forest.subset[root + k] | leaf;
    nodes[k] = {std::bit_cast<T>((threshold & ~Bits<T>{leaf}) | (infinity & leaf)),
                (left & ~leaf) | (k & leaf), feature ^ flip};
  }
  return signs < 0;
}

// Walks a row from the roots of n trees to their leaves, and returns the number of steps. The walks
// are independent, so that memory latencies overlap.
template <class Inputs>
std::int64_t walk(const Inputs& X, const ForestView& forest, std::int64_t tree, std::int64_t n,
                  std::int64_t i, std::int32_t* node) {
  std::fill(node, node + n, 0);
  std::int64_t n_steps = 0;
  for (bool moved = true; moved; n_steps += n) {
    moved = false;
    for (std::int64_t t = 0; t < n; ++t) {
      const std::int64_t k = forest.node_offsets[tree + t] + node[t];
      const std::int32_t left = forest.left[k];
      if (left < 0) continue;
      node[t] = left + !forest.test(tree + t, node[t]).left(X(i, forest.feature[k]));
      moved = true;
    }
  }
  return n_steps;
}

// Walks kRowsTogether rows to the leaves of a packed tree, and returns the number of steps.
template <bool has_missing, class Inputs, class T>
std::int64_t walk_together(const Inputs& X, std::span<const PackedNode<T>> nodes,
                           std::int64_t first, std::span<std::int32_t, kRowsTogether> node) {
  std::ranges::fill(node, 0);
  std::int64_t n_steps = 0;
  for (std::int32_t moved = 1; moved != 0; n_steps += 2 * kRowsTogether) {
    moved = 0;
    for (std::int64_t k = 0; k < kRowsTogether; ++k) {
      const auto row = [&](std::int32_t f) { return X(first + k, f); };
      const auto child = nodes[node[k]].template next<has_missing>(row);
      node[k] = nodes[child].template next<has_missing>(row);
      moved |= child ^ node[k];
    }
  }
  return n_steps;
}

template <class Stored>
bool has_missing(const DenseInputs<Stored>& X, std::int64_t begin, std::int64_t end) {
  if constexpr (std::is_floating_point_v<Stored>) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Stored* const row = X.data + i * X.row_stride;
      bool missing = false;
      for (std::int64_t j = 0; j < X.n_cols; ++j) missing |= row[j] != row[j];
      if (missing) return true;
    }
  }
  return false;
}

// Calls reach(tree, i, leaf) for some rows and all trees; the trees of a row come in their order. X
// is a function of row and feature.
template <bool has_missing, class Inputs, class Reach>
void walk_rows(const Inputs& X, const ForestView& forest, std::int64_t begin, std::int64_t end,
               const Reach& reach, Pace& pace) {
  if (end - begin < kRowsTogether) {
    for (std::int64_t t = 0; t < forest.n_trees(); t += kTreesTogether) {
      const std::int64_t n = std::min(kTreesTogether, forest.n_trees() - t);
      for (std::int64_t i = begin; i < end; ++i) {
        std::int32_t leaves[kTreesTogether];
        pace.advance(walk(X, forest, t, n, i, leaves));
        for (std::int64_t k = 0; k < n; ++k) reach(t + k, i, leaves[k]);
      }
    }
    return;
  }
  std::vector<PackedNode<decltype(X(0, 0))>> nodes;
  for (std::int64_t t = 0; t < forest.n_trees(); ++t) {
    const std::int64_t n_nodes = forest.node_offsets[t + 1] - forest.node_offsets[t];
    // A packed leaf reads the first feature, if there is one.
    const bool many = kNodesPerRow * (end - begin) >= n_nodes && !forest.n_categories.empty();
    const bool packed = many && pack<has_missing>(forest, t, nodes);
    std::int64_t i = begin;
    for (; packed && i + kRowsTogether <= end; i += kRowsTogether) {
      std::int32_t leaves[kRowsTogether];
      pace.advance(
          walk_together<has_missing>(X, std::span(std::as_const(nodes)), i, std::span(leaves)));
      for (std::int64_t k = 0; k < kRowsTogether; ++k) reach(t, i + k, leaves[k]);
    }
    for (; i < end; ++i) {
      std::int32_t leaf;
      pace.advance(walk(X, forest, t, 1, i, &leaf));
      reach(t, i, leaf);
    }
  }
}

// The same for all rows, in blocks that threads share.
template <class Inputs, class Reach>
void walk_all(const Inputs& X, const ForestView& forest, int n_threads, Watch& watch,
              const Reach& reach) {
  // Rows per pass through a tree: as many as threads allow, while they stay in cache. Large trees
  // are packed for more rows at a time.
  constexpr std::int64_t kFewestRows = 64, kMostOfLarge = 1 << 16;
  std::int64_t largest = 0;
  for (std::int64_t t = 0; t < forest.n_trees(); ++t) {
    largest = std::max(largest, forest.node_offsets[t + 1] - forest.node_offsets[t]);
  }
  const std::int64_t most = std::clamp(4 * largest, kMostRows, kMostOfLarge);
  const std::int64_t block = std::clamp(X.n_rows / n_threads, kFewestRows, most);
  const auto walk_block = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    if constexpr (Inputs::is_dense) {
      if (X.col_stride == 1 && !has_missing(X, begin, end)) {
        const auto at = [data = X.data, stride = X.row_stride](std::int64_t i, std::int64_t j) {
          return static_cast<typename Inputs::Element>(data[i * stride + j]);
        };
        return walk_rows<false>(at, forest, begin, end, reach, pace);
      }
    }
    walk_rows<true>(X, forest, begin, end, reach, pace);
  };
  parallel_blocks(X.n_rows, block, n_threads, watch, walk_block);
}

// Rows whose leaves are looked up together, tree by tree.
constexpr std::int64_t kRowsOfLookup = 64;
static_assert(kRowsOfTask % kRowsOfLookup == 0);

// The members of a leaf, and their total weight; none where a tree does not contribute.
struct LeafRange {
  std::int32_t begin = 0, n_members = 0;
  double weight = 1.0;
};

// Looks up the leaves of some rows, tree by tree: the nodes of a tree stay in cache.
void find_ranges(std::span<const std::int32_t> leaves, const ForestView& forest, std::int64_t begin,
                 std::int64_t end, std::vector<LeafRange>& ranges) {
  const std::int64_t n_trees = forest.n_trees();
  ranges.assign(static_cast<std::size_t>((end - begin) * n_trees), {});
  for (std::int64_t t = 0; t < n_trees; ++t) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int32_t leaf = leaves[i * n_trees + t];
      if (leaf < 0) continue;
      const std::int64_t k = forest.node_offsets[t] + leaf;
      ranges[(i - begin) * n_trees + t] = {forest.begin[k], forest.end[k] - forest.begin[k],
                                           forest.weight[k]};
    }
  }
}

// One over the number of trees in a row's mean.
double share_of(std::int64_t i, std::span<const std::int32_t> leaves, std::int64_t n_trees) {
  const auto row = leaves.subspan(i * n_trees, n_trees);
  return 1.0 / static_cast<double>(n_trees - std::ranges::count(row, -1));
}

// A sum of sparse vectors.
class SparseSum {
 public:
  explicit SparseSum(std::size_t n) : values_(n, 0.0), used_((n + 63) / 64, 0) {}

  void add(std::int32_t place, double value) {
    std::uint64_t& word = used_[static_cast<std::size_t>(place) / 64];
    // Few words are in use of many: they are listed.
    if (word == 0) words_.push_back(place / 64);
    word |= std::uint64_t{1} << (place % 64);
    values_[place] += value;
  }

  // Appends the sum to a matrix as a row, and starts again. Returns the number of its entries.
  std::int64_t move_to(SparseRows& rows) {
    const std::size_t before = rows.columns.size();
    std::sort(words_.begin(), words_.end());
    for (const std::int32_t word : words_) {
      for (std::uint64_t bits = std::exchange(used_[word], 0); bits != 0; bits &= bits - 1) {
        const std::int32_t place = 64 * word + std::countr_zero(bits);
        rows.columns.push_back(place);
        rows.values.push_back(std::exchange(values_[place], 0.0));
      }
    }
    words_.clear();
    return static_cast<std::int64_t>(rows.columns.size() - before);
  }

 private:
  std::vector<double> values_;
  std::vector<std::uint64_t> used_;  // a bit for each place
  std::vector<std::int32_t> words_;  // that have a bit
};

// Adds to `mean` that of the members of a leaf.
void add_mean(std::int64_t tree, std::int32_t leaf, const ForestView& forest,
              const MatrixView& values, std::span<double> mean, Pace& pace) {
  forest.for_members(tree, leaf, [&](std::int32_t member, double part) {
    const double* row = values.row(member);
    for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += part * row[c];
  });
  pace.advance(forest.n_members(tree, leaf) * values.n_cols);
}

// Adds to rows begin .. end - 1 of `sums` share[i] times the mean of the values of its leaf's
// members in one tree. Each leaf's mean is computed once, however many of these rows reach it.
void add_tree_means(std::int64_t tree, std::span<const std::int32_t> leaves,
                    const ForestView& forest, const MatrixView& values, std::int64_t begin,
                    std::int64_t end, std::span<const double> share, std::span<double> sums,
                    Pace& pace) {
  const std::int64_t n_trees = forest.n_trees();
  std::vector<std::pair<std::int32_t, std::int64_t>> by_leaf;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int32_t leaf = leaves[i * n_trees + tree];
    if (leaf >= 0) by_leaf.push_back({leaf, i});
  }
  std::sort(by_leaf.begin(), by_leaf.end());
  std::vector<double> mean(static_cast<std::size_t>(values.n_cols));
  std::int32_t current = -1;
  for (const auto& [leaf, i] : by_leaf) {
    if (leaf != current) {
      current = leaf;
      std::fill(mean.begin(), mean.end(), 0.0);
      add_mean(tree, leaf, forest, values, mean, pace);
    }
    double* sum = &sums[i * values.n_cols];
    for (std::size_t c = 0; c < mean.size(); ++c) sum[c] += share[i] * mean[c];
    pace.advance(values.n_cols);
  }
}

// A row with the same values for each row: rows of few kinds, such as classes, stay in cache.
std::vector<std::int32_t> representatives(const MatrixView& values, Pace& pace) {
  constexpr std::size_t kKinds = 64;
  const auto width = static_cast<std::size_t>(values.n_cols);
  std::vector<std::int32_t> result(static_cast<std::size_t>(values.n_rows)), kinds;
  for (std::int32_t i = 0; i < values.n_rows; ++i) {
    const double* const row = values.row(i);
    const auto kind = std::ranges::find_if(
        kinds, [&](std::int32_t k) { return std::equal(row, row + width, values.row(k)); });
    result[i] = kind == kinds.end() ? i : *kind;
    if (kind == kinds.end() && kinds.size() < kKinds) kinds.push_back(i);
    pace.advance(static_cast<std::int64_t>(kinds.size()));
  }
  return result;
}

// Whether the members of a node have the same values.
bool are_equal(std::int64_t tree, std::int64_t node, const ForestView& forest,
               const MatrixView& values) {
  const std::int64_t k = forest.node_offsets[tree] + node;
  const auto members = forest.members.subspan(forest.member_offsets[tree] + forest.begin[k],
                                              forest.n_members(tree, node));
  const std::span first(values.row(members[0]), static_cast<std::size_t>(values.n_cols));
  return std::ranges::all_of(members.subspan(1), [&](std::int32_t member) {
    return std::equal(first.begin(), first.end(), values.row(member));
  });
}

}  // namespace

template <class Inputs>
std::vector<std::int32_t> apply(const Inputs& X, const ForestView& forest, int n_threads,
                                Watch& watch) {
  const std::int64_t n_trees = forest.n_trees();
  std::vector<std::int32_t> leaves(static_cast<std::size_t>(X.n_rows * n_trees));
  walk_all(X, forest, n_threads, watch, [&](std::int64_t t, std::int64_t i, std::int32_t leaf) {
    leaves[i * n_trees + t] = leaf;
  });
  return leaves;
}

LeafCounts count_members(std::span<const std::int32_t> leaves, const ForestView& forest,
                         Watch& watch) {
  const auto n_trees = static_cast<std::size_t>(forest.n_trees());
  LeafCounts counts;
  Pace pace(watch);
  for (std::size_t first = 0; first < leaves.size(); first += n_trees) {
    for (std::size_t t = 0; t < n_trees; ++t) {
      const std::int32_t leaf = leaves[first + t];
      if (leaf < 0) continue;
      ++counts.n_leaves;
      counts.n_members += forest.n_members(static_cast<std::int64_t>(t), leaf);
    }
    pace.advance(static_cast<std::int64_t>(n_trees));
  }
  return counts;
}

SparseRows leaf_weights(std::span<const std::int32_t> leaves, const ForestView& forest,
                        int n_threads, Watch& watch) {
  const std::int64_t n_trees = forest.n_trees();
  const auto n_rows = static_cast<std::int64_t>(leaves.size()) / std::max<std::int64_t>(n_trees, 1);
  SparseRows result;
  result.offsets.assign(static_cast<std::size_t>(n_rows + 1), 0);
  std::vector<SparseRows> parts(static_cast<std::size_t>(n_rows / kRowsOfTask + 1));
  const auto fill_part = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    SparseRows& part = parts[begin / kRowsOfTask];
    SparseSum sum(forest.row_weight.size());
    std::vector<LeafRange> ranges;
    for (std::int64_t i = begin; i < end; ++i) {
      if (i % kRowsOfLookup == 0) {
        find_ranges(leaves, forest, i, std::min(end, i + kRowsOfLookup), ranges);
      }
      const double share = share_of(i, leaves, n_trees);
      const LeafRange* range = &ranges[(i % kRowsOfLookup) * n_trees];
      for (std::int64_t t = 0; t < n_trees; ++t, ++range) {
        const std::int64_t first = forest.member_offsets[t] + range->begin;
        for (std::int64_t m = first; m < first + range->n_members; ++m) {
          sum.add(forest.members[m], share * (forest.member_weight(m) / range->weight));
        }
        pace.advance(range->n_members);
      }
      result.offsets[i + 1] = sum.move_to(part);
    }
  };
  parallel_blocks(n_rows, kRowsOfTask, n_threads, watch, fill_part);

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
    share[i] = share_of(i, leaves, n_trees);
  }
  std::vector<double> sums(static_cast<std::size_t>(n_rows * values.n_cols), 0.0);
  // Every entry is summed in the order of the trees, however rows are divided.
  const std::int64_t block = std::max<std::int64_t>(1, (n_rows + n_threads - 1) / n_threads);
  parallel_blocks(n_rows, block, n_threads, watch,
                  [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                    for (std::int64_t t = 0; t < n_trees; ++t) {
                      add_tree_means(t, leaves, forest, values, begin, end, share, sums, pace);
                    }
                  });
  return sums;
}

LeafTable leaf_table(const ForestView& forest, const MatrixView& values, std::int64_t most_means,
                     int n_threads, Watch& watch) {
  const std::int64_t n_trees = forest.n_trees();
  const auto width = static_cast<std::size_t>(values.n_cols);
  LeafTable table;
  table.places.resize(forest.left.size(), 0);
  std::vector<std::int64_t> first(static_cast<std::size_t>(n_trees) + 1, 0);  // mean of each tree
  const auto for_leaves = [&](std::int64_t t, auto&& body) {
    const auto n_nodes =
        static_cast<std::int32_t>(forest.node_offsets[t + 1] - forest.node_offsets[t]);
    for (std::int32_t node = 0; node < n_nodes; ++node) {
      if (forest.left[forest.node_offsets[t] + node] < 0)
        body(node, table.places[forest.node_offsets[t] + node]);
    }
  };
  Pace of_caller(watch);
  const std::vector<std::int32_t> kind = representatives(values, of_caller);
  parallel_for(n_trees, n_threads, watch, [&](std::int64_t t, Pace& pace) {
    std::int32_t n_means = 0;
    for_leaves(t, [&](std::int32_t leaf, std::int32_t& place) {
      const std::int64_t k = forest.node_offsets[t] + leaf;
      const std::int32_t member = forest.members[forest.member_offsets[t] + forest.begin[k]];
      place = are_equal(t, leaf, forest, values) ? ~kind[member] : n_means++;
      pace.advance(forest.n_members(t, leaf));
    });
    first[t + 1] = n_means;
  });
  for (std::int64_t t = 0; t < n_trees; ++t) first[t + 1] += first[t];
  if (first.back() > std::min<std::int64_t>(most_means, std::numeric_limits<std::int32_t>::max())) {
    return {};
  }
  table.means.resize(static_cast<std::size_t>(first.back()) * width, 0.0);
  parallel_for(n_trees, n_threads, watch, [&](std::int64_t t, Pace& pace) {
    for_leaves(t, [&](std::int32_t leaf, std::int32_t& place) {
      if (place < 0) return;
      place += static_cast<std::int32_t>(first[t]);
      const auto at = static_cast<std::size_t>(place) * width;
      add_mean(t, leaf, forest, values, std::span(table.means).subspan(at, width), pace);
    });
  });
  return table;
}

template <class Inputs>
std::vector<double> leaf_sums(const Inputs& X, const ForestView& forest, const LeafVectors& vectors,
                              std::span<const double> start, double factor, int n_threads,
                              Watch& watch) {
  const std::int64_t width = vectors.means.n_cols;
  std::vector<double> sums(static_cast<std::size_t>(X.n_rows * width), 0.0);
  const auto vector_of = [&](std::int64_t t, std::int32_t leaf) {
    const std::int32_t place = vectors.places[forest.node_offsets[t] + leaf];
    return place >= 0 ? vectors.means.row(place) : vectors.values.row(~place);
  };
  if (width == 1) {
    walk_all(X, forest, n_threads, watch, [&](std::int64_t t, std::int64_t i, std::int32_t leaf) {
      sums[i] += *vector_of(t, leaf);
    });
  } else {
    walk_all(X, forest, n_threads, watch, [&](std::int64_t t, std::int64_t i, std::int32_t leaf) {
      const double* const vector = vector_of(t, leaf);
      double* const sum = sums.data() + i * width;
      for (std::int64_t c = 0; c < width; ++c) sum[c] += vector[c];
    });
  }
  for (std::int64_t i = 0; i < X.n_rows; ++i) {
    for (std::int64_t c = 0; c < width; ++c) {
      double& sum = sums[i * width + c];
      sum = start[c] + factor * sum;
    }
  }
  return sums;
}

#define OKFOREST_INSTANTIATE(Inputs)                                                           \
  template std::vector<std::int32_t> apply(const Inputs&, const ForestView&, int, Watch&);     \
  template std::vector<double> leaf_sums(const Inputs&, const ForestView&, const LeafVectors&, \
                                         std::span<const double>, double, int, Watch&)
OKFOREST_INSTANTIATE(DenseInputs<std::uint8_t>);
OKFOREST_INSTANTIATE(DenseInputs<float>);
OKFOREST_INSTANTIATE(DenseInputs<double>);
OKFOREST_INSTANTIATE(RowInputs<float>);
OKFOREST_INSTANTIATE(RowInputs<double>);
#undef OKFOREST_INSTANTIATE

}  // namespace okforest
