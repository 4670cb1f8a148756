#include "core/residuals.hpp"

#include <algorithm>

#include "core/aligned_array.hpp"
#include "core/kernels.hpp"
#include "core/parallel.hpp"

namespace okforest {

namespace {

// Columns processed together: a few thousand rows of them stay in cache between the two passes.
constexpr std::int64_t kPanel = 128;
constexpr std::int64_t kRows = 64;

std::vector<double> scaled_weights(const LeavesView& leaves) {
  std::vector<double> scaled(leaves.weights.begin(), leaves.weights.end());
  for (double& weight : scaled) weight *= leaves.scale;
  return scaled;
}

// Adds up the members of a leaf, in all columns. `part` is scratch memory for a row.
void add_rows(const MutableMatrix& values, const LeavesView& leaves, const double* scaled,
              std::int64_t leaf, double* part, double* mean, Pace& pace) {
  // Some members at a time, so that a signal is heard soon.
  for (std::int64_t m = leaves.offsets[leaf]; m < leaves.offsets[leaf + 1]; m += kRows) {
    const std::int64_t end = std::min(leaves.offsets[leaf + 1], m + kRows);
    kernels().sum_rows(values.data, values.n_cols, leaves.members.subspan(m, end - m), scaled + m,
                       part);
    kernels().add_scaled(mean, part, 1.0, values.n_cols);
    pace.advance((end - m) * values.n_cols);
  }
}

// Adds up the members of all leaves in a panel of columns.
void add_panel(const MutableMatrix& values, std::int64_t begin, std::int64_t end,
               const LeavesView& leaves, const double* scaled, double* means, Pace& pace) {
  if (end - begin == values.n_cols) {
    std::vector<double> part(static_cast<std::size_t>(values.n_cols));
    for (std::int64_t leaf = 0; leaf < leaves.n_leaves(); ++leaf, means += values.n_cols) {
      add_rows(values, leaves, scaled, leaf, part.data(), means, pace);
    }
    return;
  }
  for (std::int64_t leaf = 0; leaf < leaves.n_leaves(); ++leaf, means += values.n_cols) {
    for (std::int64_t m = leaves.offsets[leaf]; m < leaves.offsets[leaf + 1]; ++m) {
      kernels().add_scaled(means + begin, values.row(leaves.members[m]) + begin, scaled[m],
                           end - begin);
      pace.advance(end - begin);
    }
  }
}

}  // namespace

std::vector<double> subtract_means(const MutableMatrix& values, const LeavesView& leaves,
                                   int n_threads, Watch& watch) {
  std::vector<double> means(static_cast<std::size_t>(leaves.n_leaves() * values.n_cols), 0.0);
  const std::vector<double> scaled = scaled_weights(leaves);
  const auto subtract = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    add_panel(values, begin, end, leaves, scaled.data(), means.data(), pace);
    for (std::int64_t i = 0; i < values.n_rows; ++i) {
      kernels().add_scaled(values.row(i) + begin,
                           means.data() + leaves.places[i] * values.n_cols + begin, -1.0,
                           end - begin);
      pace.advance(end - begin);
    }
  };
  parallel_blocks(values.n_cols, kPanel, n_threads, watch, subtract);
  return means;
}

// With v_i the scaled mean that row i loses, <r_i - v_i, r_j - v_j> = k_ij - d_ij - d_ji, where
// d_ij = <v_i, r_j> - <v_i, v_j> / 2.
std::vector<double> subtract_means_from_gram(const MutableMatrix& gram, const LeavesView& leaves,
                                             int n_threads, Watch& watch) {
  const std::int64_t n = gram.n_rows, n_leaves = leaves.n_leaves();
  const std::vector<double> scaled = scaled_weights(leaves);
  std::vector<double> products(static_cast<std::size_t>(n_leaves * n), 0.0);
  parallel_for(n_leaves, n_threads, watch, [&](std::int64_t leaf, Pace& of_thread) {
    std::vector<double> part(static_cast<std::size_t>(n));
    add_rows(gram, leaves, scaled.data(), leaf, part.data(), products.data() + leaf * n, of_thread);
  });
  Pace pace(watch);
  std::vector<double> halves(static_cast<std::size_t>(n_leaves * n_leaves), 0.0);
  for (std::int64_t a = 0; a < n_leaves; ++a) {
    for (std::int64_t b = 0; b < n_leaves; ++b) {
      double sum = 0.0;
      for (std::int64_t m = leaves.offsets[b]; m < leaves.offsets[b + 1]; ++m) {
        sum += leaves.weights[m] * products[a * n + leaves.members[m]];
      }
      halves[a * n_leaves + b] = 0.5 * leaves.scale * sum;
    }
    pace.advance(n + n_leaves);
  }
  for (std::int64_t a = 0; a < n_leaves; ++a) {
    for (std::int64_t j = 0; j < n; ++j)
      products[a * n + j] -= halves[a * n_leaves + leaves.places[j]];
    pace.advance(n);
  }
  std::vector<double> sums(static_cast<std::size_t>(n));
  const std::int64_t n_blocks = (n + kRows - 1) / kRows;
  parallel_for(n_blocks, n_threads, watch, [&](std::int64_t block, Pace& of_thread) {
    const std::int64_t end = std::min(n, (block + 1) * kRows);
    kernels().subtract_both(gram.data, n, products.data(), leaves.places.data(), block * kRows, end,
                            sums.data());
    of_thread.advance(kRows * n);
  });
  return sums;
}

std::vector<double> leaf_coefficients(std::span<const LeavesView> trees,
                                      std::span<const double> initial, int n_threads,
                                      Watch& watch) {
  const auto n = static_cast<std::int64_t>(initial.size());
  std::int64_t n_leaves = 0;
  for (const LeavesView& leaves : trees) n_leaves += leaves.n_leaves();
  std::vector<double> coefficients(static_cast<std::size_t>(n_leaves * n));
  const auto add_columns = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    const std::int64_t width = end - begin;
    AlignedArray<double> residuals(static_cast<std::size_t>(n * width)), last_means;
    const auto row = [&](std::int64_t i) { return residuals.data() + i * width; };
    for (std::int64_t j = 0; j < width; ++j) residuals[(begin + j) * width + j] = 1.0;
    // The mean that boosting starts from is that of a tree with a single leaf.
    AlignedArray<double> means(initial.begin() + begin, initial.begin() + end);
    std::vector<std::int32_t> places(static_cast<std::size_t>(n), 0);
    std::vector<char> is_member(static_cast<std::size_t>(n));
    double* out = coefficients.data() + begin;
    for (const LeavesView& leaves : trees) {
      means.swap(last_means);
      std::ranges::fill(is_member, 0);
      const auto subtract_mean = [&](std::int64_t i) {
        kernels().add_scaled(row(i), last_means.data() + places[i] * width, -1.0, width);
        pace.advance(width);
      };
      means.assign(static_cast<std::size_t>(leaves.n_leaves() * width), 0.0);
      for (std::int64_t leaf = 0; leaf < leaves.n_leaves(); ++leaf, out += n) {
        double* const mean = means.data() + leaf * width;
        for (std::int64_t m = leaves.offsets[leaf]; m < leaves.offsets[leaf + 1]; ++m) {
          // Its last mean is subtracted from a row just before the row is added up.
          const std::int32_t i = leaves.members[m];
          subtract_mean(i);
          kernels().add_scaled(mean, row(i), leaves.scale * leaves.weights[m], width);
          is_member[i] = 1;
        }
        std::copy_n(mean, width, out);
      }
      for (std::int64_t i = 0; i < n; ++i) {
        if (!is_member[i]) subtract_mean(i);
      }
      std::ranges::copy(leaves.places, places.begin());
    }
  };
  parallel_blocks(n, kPanel, n_threads, watch, add_columns);
  return coefficients;
}

template <class Number>
std::vector<double> pull_back(const ForestView& forest, const TrainingLeaves<Number>& reached,
                              std::span<const double> scales, std::span<const double> initial,
                              const MatrixOf<const std::int32_t>& leaves, int n_threads,
                              Watch& watch) {
  constexpr std::int64_t kPredictions = 32;  // at a time
  const std::int64_t n_train = reached.n_train, n = leaves.n_cols;
  std::vector<double> weights(static_cast<std::size_t>(n * n_train));
  const auto of_some = [&](std::int64_t first, std::int64_t end, Pace& pace) {
    const std::int64_t width = end - first;
    // The sum of the weights in all later rounds: of rows, and of the residuals in a leaf.
    std::vector<double> later(static_cast<std::size_t>(n_train * width), 0.0), by_leaf;
    std::vector<std::int64_t> nodes;
    const auto add = [&](double* to, const double* from, double factor) {
      for (std::int64_t c = 0; c < width; ++c) to[c] += factor * from[c];
    };
    for (std::int64_t m = leaves.n_rows; m-- > 0;) {
      nodes.clear();
      for (std::int64_t k = forest.node_offsets[m]; k < forest.node_offsets[m + 1]; ++k) {
        if (forest.left[k] < 0) nodes.push_back(k);
      }
      std::ranges::sort(nodes, {}, [&](std::int64_t k) { return forest.begin[k]; });
      by_leaf.assign(nodes.size() * static_cast<std::size_t>(width), 0.0);
      const Number* const number = reached.numbers + m * n_train;
      for (std::int64_t i = 0; i < n_train; ++i) {
        add(by_leaf.data() + number[i] * width, later.data() + i * width, -1.0);
      }
      for (std::int64_t c = 0; c < width; ++c) {
        by_leaf[leaves.row(m)[first + c] * width + c] += 1.0;
      }
      const std::int32_t* const members = forest.members.data() + forest.member_offsets[m];
      for (std::size_t leaf = 0; leaf < nodes.size(); ++leaf) {
        const std::int64_t k = nodes[leaf];
        const double share = scales[m] / forest.weight[k];
        const double* const taken = by_leaf.data() + static_cast<std::int64_t>(leaf) * width;
        for (std::int32_t p = forest.begin[k]; p < forest.end[k]; ++p) {
          add(later.data() + members[p] * width, taken, share * forest.row_weight[members[p]]);
        }
      }
      pace.advance(2 * n_train * width);
    }
    for (std::int64_t c = 0; c < width; ++c) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < n_train; ++i) sum += later[i * width + c];
      double* const out = weights.data() + (first + c) * n_train;
      for (std::int64_t i = 0; i < n_train; ++i) {
        out[i] = later[i * width + c] + initial[i] * (1.0 - sum);
      }
      pace.advance(2 * n_train);
    }
  };
  parallel_blocks(n, kPredictions, n_threads, watch, of_some);
  return weights;
}

#define OKFOREST_INSTANTIATE(Number)                                                       \
  template std::vector<double> pull_back(const ForestView&, const TrainingLeaves<Number>&, \
                                         std::span<const double>, std::span<const double>, \
                                         const MatrixOf<const std::int32_t>&, int, Watch&)
OKFOREST_INSTANTIATE(std::uint8_t);
OKFOREST_INSTANTIATE(std::uint16_t);
OKFOREST_INSTANTIATE(std::uint32_t);
#undef OKFOREST_INSTANTIATE

}  // namespace okforest
