#include "core/residuals.hpp"

#include <algorithm>

#include "core/dispatch.hpp"
#include "core/parallel.hpp"

namespace okforest {

namespace {

// Columns taken at a time: some thousand rows of them stay in cache from their sums to their
// differences.
constexpr std::int64_t kPanel = 128;
constexpr std::int64_t kRows = 64;

// Sums a panel of columns over the members of every leaf.
OKFOREST_CLONES
void add_up(const double* values, std::int64_t n_cols, std::int64_t begin, std::int64_t end,
            const LeavesView& leaves, double* means) {
  for (std::int64_t leaf = 0; leaf < leaves.n_leaves(); ++leaf) {
    double* mean = means + leaf * n_cols;
    for (std::int64_t m = leaves.offsets[leaf]; m < leaves.offsets[leaf + 1]; ++m) {
      const double* row = values + leaves.members[m] * n_cols;
      const double weight = leaves.scale * leaves.weights[m];
      for (std::int64_t c = begin; c < end; ++c) mean[c] += weight * row[c];
    }
  }
}

OKFOREST_CLONES
void subtract(double* row, const double* mean, std::int64_t begin, std::int64_t end) {
  for (std::int64_t c = begin; c < end; ++c) row[c] -= mean[c];
}

// row[j] -= first[j] + second[places[j]]: the sum first, for both triangles to stay the same.
OKFOREST_CLONES
void subtract_both(double* row, const double* first, const double* second,
                   const std::int32_t* places, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) row[j] -= first[j] + second[places[j]];
}

template <class Body>
void for_panels(std::int64_t n_cols, int n_threads, Body&& body) {
  parallel_for((n_cols + kPanel - 1) / kPanel, n_threads, [&](std::int64_t panel) {
    body(panel * kPanel, std::min(n_cols, (panel + 1) * kPanel));
  });
}

}  // namespace

std::vector<double> subtract_means(const MutableMatrix& values, const LeavesView& leaves,
                                   int n_threads) {
  std::vector<double> means(static_cast<std::size_t>(leaves.n_leaves() * values.n_cols), 0.0);
  for_panels(values.n_cols, n_threads, [&](std::int64_t begin, std::int64_t end) {
    add_up(values.data, values.n_cols, begin, end, leaves, means.data());
    for (std::int64_t i = 0; i < values.n_rows; ++i) {
      subtract(values.row(i), means.data() + leaves.places[i] * values.n_cols, begin, end);
    }
  });
  return means;
}

// With v the vectors of leaves, <r_i - v_i, r_j - v_j> = k_ij - d_ij - d_ji, where
// d_ij = <v_i, r_j> - <v_i, v_j> / 2.
void subtract_means_from_gram(const MutableMatrix& gram, const LeavesView& leaves, int n_threads) {
  const std::int64_t n = gram.n_rows, n_leaves = leaves.n_leaves();
  std::vector<double> products(static_cast<std::size_t>(n_leaves * n), 0.0);
  for_panels(n, n_threads, [&](std::int64_t begin, std::int64_t end) {
    add_up(gram.data, n, begin, end, leaves, products.data());
  });
  std::vector<double> halves(static_cast<std::size_t>(n_leaves * n_leaves), 0.0);
  for (std::int64_t a = 0; a < n_leaves; ++a) {
    for (std::int64_t b = 0; b < n_leaves; ++b) {
      double sum = 0.0;
      for (std::int64_t m = leaves.offsets[b]; m < leaves.offsets[b + 1]; ++m) {
        sum += leaves.weights[m] * products[a * n + leaves.members[m]];
      }
      halves[a * n_leaves + b] = 0.5 * leaves.scale * sum;
    }
  }
  std::vector<double> transposed(products.size());
  for (std::int64_t a = 0; a < n_leaves; ++a) {
    for (std::int64_t j = 0; j < n; ++j) {
      products[a * n + j] -= halves[a * n_leaves + leaves.places[j]];
      transposed[j * n_leaves + a] = products[a * n + j];
    }
  }
  parallel_for((n + kRows - 1) / kRows, n_threads, [&](std::int64_t block) {
    for (std::int64_t i = block * kRows; i < std::min(n, (block + 1) * kRows); ++i) {
      subtract_both(gram.row(i), products.data() + leaves.places[i] * n,
                    transposed.data() + i * n_leaves, leaves.places.data(), n);
    }
  });
}

}  // namespace okforest
