#include "core/gram.hpp"

#include <algorithm>

#include "core/dispatch.hpp"

namespace okforest {

namespace {

using Rows = std::span<const std::int32_t>;

OKFOREST_CLONES void add_scaled(double* __restrict sum, const double* __restrict row, double scale,
                                std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] += scale * row[j];
}

}  // namespace

GramScorer::GramScorer(const Outputs& gram, std::span<const double> weight)
    : gram_(gram),
      weight_(weight),
      place_(static_cast<std::size_t>(gram.n_rows)),
      inner_(static_cast<std::size_t>(gram.n_rows)),
      reach_(static_cast<std::size_t>(gram.n_rows)) {}

double GramScorer::enter(Rows rows, double total_weight) {
  const auto n = static_cast<std::int64_t>(rows.size());
  if (2 * n > gram_.n_rows) {
    base_ = gram_.data;
    width_ = gram_.n_rows;
    for (const auto i : rows) place_[i] = i;
  } else {
    block_.resize(std::max(block_.size(), static_cast<std::size_t>(n * n)));
    double* out = block_.data();
    for (const auto i : rows) {
      const double* source = gram_.row(i);
      for (const auto j : rows) *out++ = source[j];
    }
    base_ = block_.data();
    width_ = n;
    for (std::int64_t k = 0; k < n; ++k) place_[rows[k]] = k;
  }

  double square = 0.0;
  double sum_norm = 0.0;
  for (const auto i : rows) {
    const double* k_i = row(i);
    double sum = 0.0;
    for (const auto j : rows) sum += weight_[j] * k_i[place_[j]];
    inner_[i] = sum / total_weight;
    sum_norm += weight_[i] * sum;
    square += weight_[i] * k_i[place_[i]];
  }
  mean_norm_ = sum_norm / (total_weight * total_weight);
  scale_ = square;
  if (base_ != block_.data()) return std::max(0.0, square - sum_norm / total_weight);

  // A block of one's own is centred on the node's mean: no digit is lost where that is far away.
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
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto i = order[k];
    const double w = weight_[i];
    const double* k_i = row(i);
    norm += w * (2.0 * reach_[place_[i]] + w * k_i[place_[i]]);
    weight += w;
    inner += w * inner_[i];
    norms[k] = centred(norm, weight, inner);
    add_scaled(reach_.data(), k_i, w, width_);
  }
}

double GramScorer::subset_norm(Rows subset) const {
  double norm = 0.0, weight = 0.0, inner = 0.0;
  for (std::size_t a = 0; a < subset.size(); ++a) {
    const auto i = subset[a];
    const double* k_i = row(i);
    double reach = 0.0;
    for (std::size_t b = 0; b < a; ++b) reach += weight_[subset[b]] * k_i[place_[subset[b]]];
    norm += weight_[i] * (2.0 * reach + weight_[i] * k_i[place_[i]]);
    weight += weight_[i];
    inner += weight_[i] * inner_[i];
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
