#include "core/panels.hpp"

#include <algorithm>

#include "core/dispatch.hpp"

namespace okforest {

namespace {

using Rows = std::span<const std::int32_t>;

OKFOREST_INLINE double total(double v) { return v; }

OKFOREST_INLINE double total(const Lanes::Vector& v) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

// Weighted sum of a panel over rows; four running totals hide the latency of the additions. With
// `plain`, all weights are one.
template <bool plain, class L>
OKFOREST_INLINE auto panel_sum(const L* panel, Rows rows, const double* weight) {
  const auto at = [&](std::size_t k) {
    const auto i = rows[k];
    if constexpr (plain) {
      return panel[i].v;
    } else {
      return weight[i] * panel[i].v;
    }
  };
  decltype(L::v) a = {}, b = {}, c = {}, d = {};
  std::size_t k = 0;
  for (; k + 4 <= rows.size(); k += 4) {
    a += at(k);
    b += at(k + 1);
    c += at(k + 2);
    d += at(k + 3);
  }
  for (; k < rows.size(); ++k) a += at(k);
  return (a + b) + (c + d);
}

template <class L>
OKFOREST_INLINE void sums_of(const Panels<L>& phi, Rows rows, const double* weight, L* sums) {
  for (std::int64_t p = 0; p < phi.n_panels; ++p) {
    sums[p].v = panel_sum<false>(phi.panel(p), rows, weight);
  }
}

template <class L>
OKFOREST_INLINE void prefix_norms_of(const Panels<L>& phi, const L* mean, Rows order,
                                     const double* weight, double* norms) {
  for (std::int64_t p = 0; p < phi.n_panels; ++p) {
    const L* panel = phi.panel(p);
    const auto centre = mean[p].v;
    decltype(L::v) sum = {};
    for (std::size_t k = 0; k < order.size(); ++k) {
      sum += weight[order[k]] * (panel[order[k]].v - centre);
      norms[k] += total(sum * sum);
    }
  }
}

// Panel by panel, for all subsets: what is read of a panel stays near.
template <bool plain, class L>
OKFOREST_INLINE void subset_norms_of(const Panels<L>& phi, const L* mean,
                                     std::span<const Rows> subsets, const double* weight,
                                     const double* subset_weight, double* norms) {
  for (std::int64_t p = 0; p < phi.n_panels; ++p) {
    for (std::size_t s = 0; s < subsets.size(); ++s) {
      const auto sum =
          panel_sum<plain>(phi.panel(p), subsets[s], weight) - subset_weight[s] * mean[p].v;
      norms[s] += total(sum * sum);
    }
  }
}

// Templates cannot be cloned, so each hot loop is named once per width.
OKFOREST_CLONES void sums(const Panels<Lanes>& phi, Rows rows, const double* weight, Lanes* out) {
  sums_of(phi, rows, weight, out);
}
OKFOREST_CLONES void prefixes(const Panels<Lanes>& phi, const Lanes* mean, Rows order,
                              const double* weight, double* norms) {
  prefix_norms_of(phi, mean, order, weight, norms);
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
void prefixes(const Panels<Lane>& phi, const Lane* mean, Rows order, const double* weight,
              double* norms) {
  prefix_norms_of(phi, mean, order, weight, norms);
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
      entry(lanes[(j / L::width) * n_rows + i], static_cast<int>(j % L::width)) = row[j];
    }
  }
}

template <class L>
FactorScorer<L>::FactorScorer(const Outputs& outputs)
    : outputs_(outputs),
      squared_norm_(static_cast<std::size_t>(outputs.n_rows), 0.0),
      mean_(static_cast<std::size_t>(outputs.n_panels), L{}) {
  for (std::int64_t p = 0; p < outputs.n_panels; ++p) {
    const L* panel = outputs.panel(p);
    for (std::int64_t i = 0; i < outputs.n_rows; ++i) {
      squared_norm_[i] += total(panel[i].v * panel[i].v);
    }
  }
}

template <class L>
double FactorScorer<L>::enter(Rows rows, double total_weight) {
  sums(outputs_, rows, weight_.data(), mean_.data());
  double sum_norm = 0.0;
  for (L& mean : mean_) {
    sum_norm += total(mean.v * mean.v);
    mean.v /= total_weight;
  }
  scale_ = 0.0;
  for (const auto i : rows) scale_ += weight_[i] * squared_norm_[i];
  const double variance = scale_ - sum_norm / total_weight;
  if (variance > 1e-6 * scale_) return variance;

  // Most digits have gone: sum the squares around the mean instead.
  double squares = 0.0;
  for (std::int64_t p = 0; p < outputs_.n_panels; ++p) {
    const L* panel = outputs_.panel(p);
    for (const auto i : rows) {
      const auto difference = panel[i].v - mean_[p].v;
      squares += weight_[i] * total(difference * difference);
    }
  }
  return squares;
}

template <class L>
void FactorScorer<L>::prefix_norms(std::span<const Rows> orders, double* norms) const {
  for (const Rows order : orders) {
    std::fill_n(norms, order.size(), 0.0);
    prefixes(outputs_, mean_.data(), order, weight_.data(), norms);
    norms += order.size();
  }
}

template <class L>
void FactorScorer<L>::begin(std::span<const double> weight) {
  weight_ = weight;
  plain_ = std::ranges::all_of(weight, [](double w) { return w == 1.0; });
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
    const L* panel = outputs_.panel(p);
    for (std::size_t g = 0; g < n; ++g) sum[g].v = -group_weight[g] * mean_[p].v;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      sum[group[k]].v += weight_[rows[k]] * panel[rows[k]].v;
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
