#include "core/residuals.hpp"

#include <algorithm>

#include "core/dispatch.hpp"
#include "core/parallel.hpp"

namespace okforest {

namespace {

// Columns processed together: a few thousand rows of them stay in cache between the two passes.
constexpr std::int64_t kPanel = 128;
constexpr std::int64_t kRows = 64;

// Adds the weighted members of a leaf to `mean`, in a panel of columns.
OKFOREST_CLONES
void add_members(const double* values, std::int64_t n_cols, std::int64_t begin, std::int64_t end,
                 const LeavesView& leaves, std::int64_t leaf, double* mean) {
  for (std::int64_t m = leaves.offsets[leaf]; m < leaves.offsets[leaf + 1]; ++m) {
    const double* row = values + leaves.members[m] * n_cols;
    const double weight = leaves.scale * leaves.weights[m];
    for (std::int64_t c = begin; c < end; ++c) mean[c] += weight * row[c];
  }
}

OKFOREST_CLONES
void subtract(double* row, const double* mean, std::int64_t begin, std::int64_t end) {
  for (std::int64_t c = begin; c < end; ++c) row[c] -= mean[c];
}

// row[j] -= first[j] + second[places[j]]. Adding first keeps the matrix exactly symmetric.
OKFOREST_CLONES
void subtract_both(double* row, const double* first, const double* second,
                   const std::int32_t* places, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) row[j] -= first[j] + second[places[j]];
}

// Sums a panel of columns over the members of every leaf.
void add_up(const MutableMatrix& values, std::int64_t begin, std::int64_t end,
            const LeavesView& leaves, double* means, Pace& pace) {
  for (std::int64_t leaf = 0; leaf < leaves.n_leaves(); ++leaf) {
    add_members(values.data, values.n_cols, begin, end, leaves, leaf, means + leaf * values.n_cols);
    pace.advance((leaves.offsets[leaf + 1] - leaves.offsets[leaf]) * (end - begin));
  }
}

template <class Body>
void for_panels(std::int64_t n_cols, int n_threads, Watch& watch, Body&& body) {
  const std::int64_t n_panels = (n_cols + kPanel - 1) / kPanel;
  parallel_for(n_panels, n_threads, watch, [&](std::int64_t panel, Pace& pace) {
    body(panel * kPanel, std::min(n_cols, (panel + 1) * kPanel), pace);
  });
}

}  // namespace

std::vector<double> subtract_means(const MutableMatrix& values, const LeavesView& leaves,
                                   int n_threads, Watch& watch) {
  std::vector<double> means(static_cast<std::size_t>(leaves.n_leaves() * values.n_cols), 0.0);
  for_panels(
      values.n_cols, n_threads, watch, [&](std::int64_t begin, std::int64_t end, Pace& pace) {
        add_up(values, begin, end, leaves, means.data(), pace);
        for (std::int64_t i = 0; i < values.n_rows; ++i) {
          subtract(values.row(i), means.data() + leaves.places[i] * values.n_cols, begin, end);
          pace.advance(end - begin);
        }
      });
  return means;
}

// With v_i the scaled mean that row i loses, <r_i - v_i, r_j - v_j> = k_ij - d_ij - d_ji, where
// d_ij = <v_i, r_j> - <v_i, v_j> / 2.
void subtract_means_from_gram(const MutableMatrix& gram, const LeavesView& leaves, int n_threads,
                              Watch& watch) {
  const std::int64_t n = gram.n_rows, n_leaves = leaves.n_leaves();
  std::vector<double> products(static_cast<std::size_t>(n_leaves * n), 0.0);
  for_panels(n, n_threads, watch, [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    add_up(gram, begin, end, leaves, products.data(), pace);
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
  std::vector<double> transposed(products.size());
  for (std::int64_t a = 0; a < n_leaves; ++a) {
    for (std::int64_t j = 0; j < n; ++j) {
      products[a * n + j] -= halves[a * n_leaves + leaves.places[j]];
      transposed[j * n_leaves + a] = products[a * n + j];
    }
    pace.advance(n);
  }
  const std::int64_t n_blocks = (n + kRows - 1) / kRows;
  parallel_for(n_blocks, n_threads, watch, [&](std::int64_t block, Pace& of_thread) {
    for (std::int64_t i = block * kRows; i < std::min(n, (block + 1) * kRows); ++i) {
      subtract_both(gram.row(i), products.data() + leaves.places[i] * n,
                    transposed.data() + i * n_leaves, leaves.places.data(), n);
      of_thread.advance(n);
    }
  });
}

}  // namespace okforest
