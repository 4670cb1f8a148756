#include "core/hybrid.hpp"

#include <algorithm>

#include "core/dispatch.hpp"

namespace okforest {

namespace {

// The inner products of n rows of n_panels lanes each, as a matrix with rows of length `width`.
// Each row is multiplied with four others at a time.
OKFOREST_CLONES void products(const Lanes* rows, std::int64_t n, std::int64_t n_panels,
                              std::int64_t width, double* gram) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Lanes* a = rows + i * n_panels;
    std::int64_t j = 0;
    for (; j + 4 <= i + 1; j += 4) {
      const Lanes* b = rows + j * n_panels;
      Lanes::Vector sum[4] = {};
      for (std::int64_t p = 0; p < n_panels; ++p) {
        for (std::int64_t c = 0; c < 4; ++c) sum[c] += a[p].v * b[c * n_panels + p].v;
      }
      for (std::int64_t c = 0; c < 4; ++c) gram[i * width + j + c] = total(sum[c]);
    }
    for (; j <= i; ++j) {
      Lanes::Vector sum = {};
      for (std::int64_t p = 0; p < n_panels; ++p) sum += a[p].v * rows[j * n_panels + p].v;
      gram[i * width + j] = total(sum);
    }
    for (j = 0; j < i; ++j) gram[j * width + i] = gram[i * width + j];
  }
}

// Rounds a number of columns up to full lanes.
std::int64_t padded(std::int64_t n) { return (n + Lanes::width - 1) / Lanes::width * Lanes::width; }

}  // namespace

HybridScorer::HybridScorer(const Outputs& outputs, std::int64_t most_rows)
    : outputs_(outputs),
      most_rows_(most_rows),
      factor_(outputs),
      gram_(std::max(outputs.n_rows, padded(most_rows))),
      home_(static_cast<std::size_t>(outputs.n_rows)),
      branch_gram_(static_cast<std::size_t>(padded(most_rows) * padded(most_rows))),
      packed_(static_cast<std::size_t>(most_rows * outputs.n_panels)) {}

void HybridScorer::begin(std::span<const double> weight) {
  factor_.begin(weight);
  gram_.begin(weight);
  branch_ = {};
}

double HybridScorer::enter(std::span<const std::int32_t> rows, double total_weight) {
  in_branch_ = static_cast<std::int64_t>(rows.size()) <= most_rows_;
  if (!in_branch_) return factor_.enter(rows, total_weight);
  const bool inside =
      rows.data() >= branch_.data() && rows.data() + rows.size() <= branch_.data() + branch_.size();
  if (!inside) make_branch(rows);
  return gram_.enter(rows, total_weight);
}

void HybridScorer::make_branch(std::span<const std::int32_t> rows) {
  branch_ = rows;
  const auto n = static_cast<std::int64_t>(rows.size());
  for (std::int64_t i = 0; i < n; ++i) {
    home_[rows[i]] = static_cast<std::int32_t>(i);
    for (std::int64_t p = 0; p < outputs_.n_panels; ++p) {
      packed_[i * outputs_.n_panels + p] = outputs_.at(p)[rows[i] * outputs_.stride(p)];
    }
  }
  const std::int64_t width = padded(n);
  products(packed_.data(), n, outputs_.n_panels, width, branch_gram_.data());
  gram_.rebase({branch_gram_.data(), width, width}, home_);
}

void HybridScorer::prefix_norms(std::span<const Prefixes> lists, double* norms) {
  if (in_branch_) return gram_.prefix_norms(lists, norms);
  factor_.prefix_norms(lists, norms);
}

void HybridScorer::subset_norms(std::span<const std::span<const std::int32_t>> subsets,
                                const double* subset_weight, double* norms) {
  if (in_branch_) return gram_.subset_norms(subsets, subset_weight, norms);
  factor_.subset_norms(subsets, subset_weight, norms);
}

void HybridScorer::group_gram(std::span<const std::int32_t> rows,
                              std::span<const std::int32_t> group,
                              std::span<const double> group_weight, std::span<double> gram) const {
  if (in_branch_) return gram_.group_gram(rows, group, group_weight, gram);
  factor_.group_gram(rows, group, group_weight, gram);
}

}  // namespace okforest
