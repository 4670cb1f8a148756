#include "core/panels.hpp"

#include <algorithm>
#include <type_traits>

#include "core/dispatch.hpp"

namespace okforest {

namespace {

using Rows = std::span<const std::int32_t>;

// Branches whose sums are kept, from the root down.
constexpr std::size_t kMostBranches = 64;

template <int width, class L>
OKFOREST_INLINE void call_for(const L* row) {
  for (int c = 0; c < width; ++c) __builtin_prefetch(row + c);
}

// Weighted sums over rows of a group of panels; two running totals each hide the latency of the
// additions. With `plain`, all weights are one.
template <bool plain, int width, class L>
OKFOREST_INLINE void group_sums(const L* group, bool far, Rows rows, const double* weight,
                                decltype(L::v) sums[width]) {
  decltype(L::v) odd[width] = {};
  for (int c = 0; c < width; ++c) sums[c] = decltype(L::v){};
  const auto add = [&](std::int32_t i, decltype(L::v)* to) {
    const L* row = group + static_cast<std::int64_t>(i) * width;
    for (int c = 0; c < width; ++c) {
      if constexpr (plain) {
        to[c] += row[c].v;
      } else {
        to[c] += weight[i] * row[c].v;
      }
    }
  };
  std::size_t k = 0;
  for (; k + 2 <= rows.size(); k += 2) {
    if (far && k + kAhead + 1 < rows.size()) {
      call_for<width>(group + static_cast<std::int64_t>(rows[k + kAhead]) * width);
      call_for<width>(group + static_cast<std::int64_t>(rows[k + kAhead + 1]) * width);
    }
    add(rows[k], sums);
    add(rows[k + 1], odd);
  }
  if (k < rows.size()) add(rows[k], sums);
  for (int c = 0; c < width; ++c) sums[c] += odd[c];
}

// Calls f(first panel, number of panels as a constant) for each group.
template <class L, class F>
OKFOREST_INLINE void for_groups(const Panels<L>& phi, F&& f) {
  for (std::int64_t p = 0; p < phi.n_panels; p += Panels<L>::most_in_group) {
    switch (phi.stride(p)) {
      case 1:
        f(p, std::integral_constant<int, 1>{});
        break;
      case 2:
        f(p, std::integral_constant<int, 2>{});
        break;
      case 3:
        f(p, std::integral_constant<int, 3>{});
        break;
      default:
        f(p, std::integral_constant<int, 4>{});
    }
  }
}

template <class L>
OKFOREST_INLINE void sums_of(const Panels<L>& phi, Rows rows, const double* weight, L* sums) {
  for_groups(phi, [&](std::int64_t p, auto width) __attribute__((always_inline)) {
    decltype(L::v) of_group[width];
    group_sums<false, width>(phi.at(p), phi.far(), rows, weight, of_group);
    for (int c = 0; c < width; ++c) sums[p + c].v = of_group[c];
  });
}

template <bool plain, class L>
OKFOREST_INLINE void prefix_norms_of(const Panels<L>& phi, const L* mean, const Prefixes& list,
                                     const double* weight, double* norms) {
  for_groups(phi, [&](std::int64_t p, auto width) __attribute__((always_inline)) {
    const L* group = phi.at(p);
    decltype(L::v) centre[width], sums[width] = {};
    for (int c = 0; c < width; ++c) centre[c] = mean[p + c].v;
    std::size_t k = 0;
    for (std::size_t n = 0; n < list.lengths.size(); ++n) {
      for (; k < static_cast<std::size_t>(list.lengths[n]); ++k) {
        const auto i = static_cast<std::int64_t>(list.rows[k]);
        for (int c = 0; c < width; ++c) {
          if constexpr (plain) {
            sums[c] += group[i * width + c].v - centre[c];
          } else {
            sums[c] += weight[i] * (group[i * width + c].v - centre[c]);
          }
        }
      }
      decltype(L::v) norm = {};
      for (int c = 0; c < width; ++c) norm += sums[c] * sums[c];
      norms[n] += total(norm);
    }
  });
}

// Group by group, for all subsets: what is read of a group stays near.
template <bool plain, class L>
OKFOREST_INLINE void subset_norms_of(const Panels<L>& phi, const L* mean,
                                     std::span<const Rows> subsets, const double* weight,
                                     const double* subset_weight, double* norms) {
  for_groups(phi, [&](std::int64_t p, auto width) __attribute__((always_inline)) {
    for (std::size_t s = 0; s < subsets.size(); ++s) {
      decltype(L::v) sums[width];
      group_sums<plain, width>(phi.at(p), phi.far(), subsets[s], weight, sums);
      decltype(L::v) norm = {};
      for (int c = 0; c < width; ++c) {
        sums[c] -= subset_weight[s] * mean[p + c].v;
        norm += sums[c] * sums[c];
      }
      norms[s] += total(norm);
    }
  });
}

// Templates cannot be cloned, so each hot loop is named once per width.
OKFOREST_CLONES void sums(const Panels<Lanes>& phi, Rows rows, const double* weight, Lanes* out) {
  sums_of(phi, rows, weight, out);
}
OKFOREST_CLONES void prefixes(const Panels<Lanes>& phi, const Lanes* mean, const Prefixes& list,
                              const double* weight, double* norms) {
  prefix_norms_of<false>(phi, mean, list, weight, norms);
}
OKFOREST_CLONES void plain_prefixes(const Panels<Lanes>& phi, const Lanes* mean,
                                    const Prefixes& list, double* norms) {
  prefix_norms_of<true>(phi, mean, list, nullptr, norms);
}
OKFOREST_CLONES void subsets(const Panels<Lanes>& phi, const Lanes* mean,
                             std::span<const Rows> subsets, const double* weight,
                             const double* subset_weight, double* norms) {
  subset_norms_of<false>(phi, mean, subsets, weight, subset_weight, norms);
}
OKFOREST_CLONES void plain_subsets(const Panels<Lanes>& phi, const Lanes* mean,
                                   std::span<const Rows> subsets, const double* subset_weight,
                                   double* norms) {
  subset_norms_of<true>(phi, mean, subsets, nullptr, subset_weight, norms);
}
void sums(const Panels<Lane>& phi, Rows rows, const double* weight, Lane* out) {
  sums_of(phi, rows, weight, out);
}
void prefixes(const Panels<Lane>& phi, const Lane* mean, const Prefixes& list, const double* weight,
              double* norms) {
  prefix_norms_of<false>(phi, mean, list, weight, norms);
}
void plain_prefixes(const Panels<Lane>& phi, const Lane* mean, const Prefixes& list,
                    double* norms) {
  prefix_norms_of<true>(phi, mean, list, nullptr, norms);
}
void subsets(const Panels<Lane>& phi, const Lane* mean, std::span<const Rows> subsets,
             const double* weight, const double* subset_weight, double* norms) {
  subset_norms_of<false>(phi, mean, subsets, weight, subset_weight, norms);
}
void plain_subsets(const Panels<Lane>& phi, const Lane* mean, std::span<const Rows> subsets,
                   const double* subset_weight, double* norms) {
  subset_norms_of<true>(phi, mean, subsets, nullptr, subset_weight, norms);
}

double& entry(Lane& lane, int) { return lane.v; }
double& entry(Lanes& lanes, int c) { return reinterpret_cast<double*>(&lanes.v)[c]; }

}  // namespace

template <class L>
Panels<L>::Panels(const MatrixView& phi)
    : n_rows(phi.n_rows),
      n_panels((phi.n_cols + L::width - 1) / L::width),
      lanes(static_cast<std::size_t>(n_rows * n_panels), L{}) {
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const double* row = phi.row(i);
    for (std::int64_t j = 0; j < phi.n_cols; ++j) {
      const std::int64_t p = j / L::width;
      L& lane = lanes[static_cast<std::size_t>(at(p) - lanes.data() + i * stride(p))];
      entry(lane, static_cast<int>(j % L::width)) = row[j];
    }
  }
}

template <class L>
FactorScorer<L>::FactorScorer(const Outputs& outputs)
    : outputs_(outputs),
      squared_norm_(static_cast<std::size_t>(outputs.n_rows), 0.0),
      sum_(static_cast<std::size_t>(outputs.n_panels), L{}),
      rest_(sum_),
      mean_(sum_) {
  for (std::int64_t p = 0; p < outputs.n_panels; ++p) {
    const L* panel = outputs.at(p);
    const std::int64_t stride = outputs.stride(p);
    for (std::int64_t i = 0; i < outputs.n_rows; ++i) {
      const auto v = panel[i * stride].v;
      squared_norm_[i] += total(v * v);
    }
  }
}

template <class L>
double FactorScorer<L>::enter(Rows rows, double total_weight) {
  const bool derived = derive_sum(rows);
  if (!derived) sums(outputs_, rows, weight_.data(), sum_.data());
  double variance = measure(rows, total_weight);
  if (derived && variance < 1e-2 * scale_) {  // digits have gone: take no risk with the sum
    sums(outputs_, rows, weight_.data(), sum_.data());
    variance = measure(rows, total_weight);
  }
  remember(rows);
  if (variance > 1e-6 * scale_) return variance;

  // Most digits have gone: sum the squares around the mean instead.
  double squares = 0.0;
  for (std::int64_t p = 0; p < outputs_.n_panels; ++p) {
    const L* panel = outputs_.at(p);
    const std::int64_t stride = outputs_.stride(p);
    for (const auto i : rows) {
      const auto difference = panel[i * stride].v - mean_[p].v;
      squares += weight_[i] * total(difference * difference);
    }
  }
  return squares;
}

// The sum over the node is that over a branch which holds it, less the rest of the branch, if that
// is the smaller part. Returns whether it is.
template <class L>
bool FactorScorer<L>::derive_sum(Rows rows) {
  while (n_branches_ > 0) {
    const Branch& branch = branches_[n_branches_ - 1];
    if (rows.data() < branch.rows.data() ||
        rows.data() + rows.size() > branch.rows.data() + branch.rows.size()) {
      --n_branches_;
      continue;
    }
    const auto before = static_cast<std::size_t>(rows.data() - branch.rows.data());
    const std::size_t after = branch.rows.size() - before - rows.size();
    if (before + after >= rows.size()) return false;
    sum_ = branch.sum;
    for (const Rows rest : {branch.rows.first(before), branch.rows.last(after)}) {
      if (rest.empty()) continue;
      sums(outputs_, rest, weight_.data(), rest_.data());
      for (std::size_t p = 0; p < sum_.size(); ++p) sum_[p].v -= rest_[p].v;
    }
    return true;
  }
  return false;
}

template <class L>
void FactorScorer<L>::remember(Rows rows) {
  if (n_branches_ == kMostBranches) return;
  if (branches_.size() == n_branches_) branches_.emplace_back();
  branches_[n_branches_].rows = rows;
  branches_[n_branches_++].sum = sum_;
}

// Sets the node's mean and scale from its sum, and returns its total variance.
template <class L>
double FactorScorer<L>::measure(Rows rows, double total_weight) {
  double sum_norm = 0.0;
  for (std::size_t p = 0; p < sum_.size(); ++p) {
    sum_norm += total(sum_[p].v * sum_[p].v);
    mean_[p].v = sum_[p].v / total_weight;
  }
  scale_ = 0.0;
  for (const auto i : rows) scale_ += weight_[i] * squared_norm_[i];
  return scale_ - sum_norm / total_weight;
}

template <class L>
void FactorScorer<L>::prefix_norms(std::span<const Prefixes> lists, double* norms) const {
  for (const Prefixes& list : lists) {
    std::fill_n(norms, list.lengths.size(), 0.0);
    if (plain_) {
      plain_prefixes(outputs_, mean_.data(), list, norms);
    } else {
      prefixes(outputs_, mean_.data(), list, weight_.data(), norms);
    }
    norms += list.lengths.size();
  }
}

template <class L>
void FactorScorer<L>::begin(std::span<const double> weight) {
  weight_ = weight;
  plain_ = std::ranges::all_of(weight, [](double w) { return w == 1.0; });
  n_branches_ = 0;
}

template <class L>
void FactorScorer<L>::subset_norms(std::span<const Rows> rows, const double* subset_weight,
                                   double* norms) const {
  std::fill_n(norms, rows.size(), 0.0);
  if (plain_) {
    plain_subsets(outputs_, mean_.data(), rows, subset_weight, norms);
  } else {
    subsets(outputs_, mean_.data(), rows, weight_.data(), subset_weight, norms);
  }
}

template <class L>
void FactorScorer<L>::group_gram(Rows rows, std::span<const std::int32_t> group,
                                 std::span<const double> group_weight,
                                 std::span<double> gram) const {
  const std::size_t n = group_weight.size();
  std::vector<L> sum(n);
  for (std::int64_t p = 0; p < outputs_.n_panels; ++p) {
    const L* panel = outputs_.at(p);
    const std::int64_t stride = outputs_.stride(p);
    for (std::size_t g = 0; g < n; ++g) sum[g].v = -group_weight[g] * mean_[p].v;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      sum[group[k]].v += weight_[rows[k]] * panel[rows[k] * stride].v;
    }
    for (std::size_t g = 0; g < n; ++g) {
      for (std::size_t h = 0; h < n; ++h) gram[g * n + h] += total(sum[g].v * sum[h].v);
    }
  }
}

template struct Panels<Lane>;
template struct Panels<Lanes>;
template class FactorScorer<Lane>;
template class FactorScorer<Lanes>;

}  // namespace okforest
