#include "core/gram.hpp"

#include <algorithm>

#include "core/dispatch.hpp"

namespace okforest {

namespace {

using Rows = std::span<const std::int32_t>;

// Four rows in one pass: each sum is read and written once for the four of them.
OKFOREST_CLONES void add_scaled(double* __restrict sum, const double* const rows[4],
                                const double scale[4], std::int64_t n) {
  const double* __restrict a = rows[0];
  const double* __restrict b = rows[1];
  const double* __restrict c = rows[2];
  const double* __restrict d = rows[3];
  const double wa = scale[0], wb = scale[1], wc = scale[2], wd = scale[3];
  for (std::int64_t j = 0; j < n; ++j) {
    sum[j] += (wa * a[j] + wb * b[j]) + (wc * c[j] + wd * d[j]);
  }
}

OKFOREST_CLONES double dot(const double* a, const double* b, std::int64_t n) {
  double sums[8] = {};
  std::int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    for (int c = 0; c < 8; ++c) sums[c] += a[j + c] * b[j + c];
  }
  for (; j < n; ++j) sums[0] += a[j] * b[j];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// The sum of scale[b] * row[place[b]].
double gathered_dot(const double* row, const std::int32_t* place, const double* scale,
                    std::size_t n) {
  double sums[4] = {};
  std::size_t b = 0;
  for (; b + 4 <= n; b += 4) {
    for (int c = 0; c < 4; ++c) sums[c] += scale[b + c] * row[place[b + c]];
  }
  for (; b < n; ++b) sums[0] += scale[b] * row[place[b]];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

GramScorer::GramScorer(const Outputs& gram) : GramScorer(gram.n_rows) { gram_ = gram; }

GramScorer::GramScorer(std::int64_t n_rows)
    : gram_{nullptr, 0, 0},
      place_(static_cast<std::size_t>(n_rows)),
      placed_weight_(static_cast<std::size_t>(n_rows)),
      inner_(static_cast<std::size_t>(n_rows)),
      reach_(static_cast<std::size_t>(n_rows)),
      subset_place_(static_cast<std::size_t>(n_rows)),
      subset_weight_(static_cast<std::size_t>(n_rows)) {}

void GramScorer::rebase(const MatrixView& gram, std::span<const std::int32_t> home) {
  gram_ = gram;
  home_ = home;
}

double GramScorer::enter(Rows rows, double total_weight) {
  place(rows);
  scale_ = 0.0;
  double sum_norm = 0.0;
  for (const auto i : rows) {
    const double sum = dot(row(i), placed_weight_.data(), width_);
    inner_[i] = sum / total_weight;
    sum_norm += weight_[i] * sum;
    scale_ += weight_[i] * row(i)[place_[i]];
  }
  mean_norm_ = sum_norm / (total_weight * total_weight);
  const double variance = scale_ - sum_norm / total_weight;
  const bool is_block = base_ != gram_.data;
  // Where many digits have gone, the node's own block is centred on its mean.
  return is_block && variance < 1e-3 * scale_ ? centre_block(rows) : std::max(0.0, variance);
}

// Takes whole rows of K, or packs the node's block of it.
void GramScorer::place(Rows rows) {
  const auto n = static_cast<std::int64_t>(rows.size());
  if (4 * n > 3 * gram_.n_rows) {
    base_ = gram_.data;
    width_ = gram_.n_rows;
    std::fill(placed_weight_.begin(), placed_weight_.begin() + width_, 0.0);
    for (const auto i : rows) {
      place_[i] = home(i);
      placed_weight_[place_[i]] = weight_[i];
    }
    return;
  }
  if (block_.size() < static_cast<std::size_t>(n * n)) block_.resize(n * n);
  double* out = block_.data();
  for (const auto i : rows) {
    const double* source = gram_.row(home(i));
    if (home_.empty()) {
      for (const auto j : rows) *out++ = source[j];
    } else {
      for (const auto j : rows) *out++ = source[home_[j]];
    }
  }
  base_ = block_.data();
  width_ = n;
  for (std::int64_t k = 0; k < n; ++k) {
    place_[rows[k]] = static_cast<std::int32_t>(k);
    placed_weight_[k] = weight_[rows[k]];
  }
}

double GramScorer::centre_block(Rows rows) {
  double variance = 0.0;
  double* k_ij = block_.data();
  for (const auto i : rows) {
    for (const auto j : rows) *k_ij++ += mean_norm_ - inner_[i] - inner_[j];
    variance += weight_[i] * row(i)[place_[i]];
  }
  for (const auto i : rows) inner_[i] = 0.0;
  mean_norm_ = 0.0;
  return std::max(0.0, variance);
}

// ||s - w m||^2 of a sum s of total weight w, from ||s||^2 and <s, m>, m being the node's mean.
double GramScorer::centred(double norm, double weight, double inner) const {
  return std::max(0.0, norm - 2.0 * weight * inner + weight * weight * mean_norm_);
}

void GramScorer::prefix_norms(Rows order, std::span<double> norms) {
  std::fill(reach_.begin(), reach_.begin() + width_, 0.0);
  double norm = 0.0, weight = 0.0, inner = 0.0;
  for (std::size_t k = 0; k < order.size(); k += 4) {
    const std::size_t n = std::min<std::size_t>(4, order.size() - k);
    const double* rows[4];
    double w[4] = {};
    for (std::size_t a = 0; a < 4; ++a) {
      const auto i = order[k + std::min(a, n - 1)];
      rows[a] = row(i);
      if (a >= n) continue;  // a repeated row of weight zero fills the four
      w[a] = weight_[i];
      double reach = reach_[place_[i]];
      for (std::size_t b = 0; b < a; ++b) reach += w[b] * rows[b][place_[i]];
      norm += w[a] * (2.0 * reach + w[a] * rows[a][place_[i]]);
      weight += w[a];
      inner += w[a] * inner_[i];
      norms[k + a] = centred(norm, weight, inner);
    }
    add_scaled(reach_.data(), rows, w, width_);
  }
}

double GramScorer::subset_norm(Rows subset) {
  double norm = 0.0, weight = 0.0, inner = 0.0;
  for (std::size_t a = 0; a < subset.size(); ++a) {
    const auto i = subset[a];
    const double w = weight_[i];
    subset_place_[a] = place_[i];
    subset_weight_[a] = w;
    const double reach = gathered_dot(row(i), subset_place_.data(), subset_weight_.data(), a);
    norm += w * (2.0 * reach + w * row(i)[place_[i]]);
    weight += w;
    inner += w * inner_[i];
  }
  return centred(norm, weight, inner);
}

void GramScorer::group_gram(Rows rows, std::span<const std::int32_t> group,
                            std::span<const double> group_weight, std::span<double> gram) const {
  const std::size_t n = group_weight.size();
  std::vector<double> inner(n, 0.0);  // <sum of a group, node mean>
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto i = rows[k];
    const double* k_i = row(i);
    inner[group[k]] += weight_[i] * inner_[i];
    double* sums = &gram[group[k] * n];
    for (std::size_t l = 0; l < rows.size(); ++l) {
      sums[group[l]] += weight_[i] * weight_[rows[l]] * k_i[place_[rows[l]]];
    }
  }
  for (std::size_t g = 0; g < n; ++g) {
    for (std::size_t h = 0; h < n; ++h) {
      gram[g * n + h] += group_weight[g] * group_weight[h] * mean_norm_ -
                         group_weight[g] * inner[h] - group_weight[h] * inner[g];
    }
  }
}

}  // namespace okforest
