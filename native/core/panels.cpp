#include "core/panels.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/dispatch.hpp"
#include "core/inputs.hpp"  // for kCacheSize

namespace okforest {

namespace {

using Rows = std::span<const std::int32_t>;

// The sums of this many branches are kept, from the root down.
constexpr std::size_t kMaxBranches = 64;

// A sum derived by subtraction may lose three digits more than one computed directly.
constexpr double kMaxNoise = 1e3;

bool same(Rows a, Rows b) { return a.data() == b.data() && a.size() == b.size(); }

template <int width, class L>
OKFOREST_INLINE void prefetch(const L* row) {
  for (int c = 0; c < width; ++c) __builtin_prefetch(row + c);
}

// Weighted sums over rows of a group of panels. Two running totals per panel hide the latency of
// the additions. With `plain`, all weights are one.
template <bool plain, int width, class L>
OKFOREST_INLINE void group_sums(const L* group, bool prefetched, Rows rows, const double* weight,
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
    if (prefetched && k + kPrefetchDistance + 1 < rows.size()) {
      prefetch<width>(group + static_cast<std::int64_t>(rows[k + kPrefetchDistance]) * width);
      prefetch<width>(group + static_cast<std::int64_t>(rows[k + kPrefetchDistance + 1]) * width);
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
    group_sums<false, width>(phi.at(p), phi.exceeds_cache(), rows, weight, of_group);
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

// Rows per block: their lanes stay in cache while all subsets are summed over them.
constexpr std::size_t kBlock = 64;

OKFOREST_INLINE std::size_t count_below(std::int32_t limit, Rows rows) {
  std::size_t n = 0;
  for (const auto row : rows) n += row < limit;
  return n;
}

// The norms of all subsets, group by group. A node that does not fit in cache is read in blocks,
// while the rows of the next block are prefetched: each is loaded from memory only once. Slow
// unless rows are ascending.
template <bool plain, class L>
OKFOREST_INLINE void subset_norms_of(const Panels<L>& phi, const L* mean, Rows node,
                                     std::span<Subset> subsets, const double* weight,
                                     const double* subset_weight, L* sums, double* norms) {
  const std::size_t n = subsets.size();
  if (n == 0) return;
  std::fill_n(norms, n, 0.0);
  for_groups(phi, [&](std::int64_t p, auto width) __attribute__((always_inline)) {
    const L* const group = phi.at(p);
    const bool in_cache = node.size() * width * sizeof(L) <= kCacheSize / 2;
    const std::size_t block = in_cache ? node.size() : kBlock;
    const std::size_t step = (block + n - 1) / n;
    for (auto& subset : subsets) subset.rest = subset.rows;
    for (std::size_t begin = 0; begin < node.size(); begin += block) {
      const std::size_t end = begin + block;
      const bool last = end >= node.size();
      std::size_t next = end;
      for (std::size_t s = 0; s < n; ++s) {
        const std::size_t soon = std::min(next + step, std::min(node.size(), end + block));
        for (; next < soon; ++next) {
          prefetch<width>(group + static_cast<std::int64_t>(node[next]) * width);
        }
        Rows& rest = subsets[s].rest;
        const Rows here =
            last ? rest
                 : rest.first(count_below(node[end], rest.first(std::min(block, rest.size()))));
        rest = rest.subspan(here.size());
        decltype(L::v) sum[width];
        group_sums<plain, width>(group, false, here, weight, sum);
        L* const out = sums + static_cast<std::int64_t>(s) * phi.n_panels + p;
        for (int c = 0; begin > 0 && c < width; ++c) sum[c] += out[c].v;
        for (int c = 0; c < width; ++c) out[c].v = sum[c];
        if (!last) continue;
        decltype(L::v) norm = {};
        for (int c = 0; c < width; ++c) {
          sum[c] -= subset_weight[s] * mean[p + c].v;
          norm += sum[c] * sum[c];
        }
        norms[s] += total(norm);
      }
    }
  });
}

// The compiler does not clone templates: each hot loop is a function per width.
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
OKFOREST_CLONES void subsets(const Panels<Lanes>& phi, const Lanes* mean, Rows node,
                             std::span<Subset> subsets, const double* weight,
                             const double* subset_weight, Lanes* sums, double* norms) {
  subset_norms_of<false>(phi, mean, node, subsets, weight, subset_weight, sums, norms);
}
OKFOREST_CLONES void plain_subsets(const Panels<Lanes>& phi, const Lanes* mean, Rows node,
                                   std::span<Subset> subsets, const double* subset_weight,
                                   Lanes* sums, double* norms) {
  subset_norms_of<true>(phi, mean, node, subsets, nullptr, subset_weight, sums, norms);
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
void subsets(const Panels<Lane>& phi, const Lane* mean, Rows node, std::span<Subset> subsets,
             const double* weight, const double* subset_weight, Lane* sums, double* norms) {
  subset_norms_of<false>(phi, mean, node, subsets, weight, subset_weight, sums, norms);
}
void plain_subsets(const Panels<Lane>& phi, const Lane* mean, Rows node, std::span<Subset> subsets,
                   const double* subset_weight, Lane* sums, double* norms) {
  subset_norms_of<true>(phi, mean, node, subsets, nullptr, subset_weight, sums, norms);
}

double& entry(Lane& lane, int) { return lane.v; }
double& entry(Lanes& lanes, int c) { return reinterpret_cast<double*>(&lanes.v)[c]; }

}  // namespace

template <class L>
Panels<L>::Panels(const MatrixView& phi, Pace& pace)
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
    pace.advance(phi.n_cols);
  }
}

template <class L>
FactorScorer<L>::FactorScorer(const Outputs& outputs)
    : outputs_(outputs),
      squared_norm_(static_cast<std::size_t>(outputs.n_rows), 0.0),
      sum_of_all_(static_cast<std::size_t>(outputs.n_panels), L{}),
      sum_(sum_of_all_),
      mean_(sum_of_all_),
      rest_(sum_of_all_) {
  for (std::int64_t p = 0; p < outputs.n_panels; ++p) {
    const L* panel = outputs.at(p);
    const std::int64_t stride = outputs.stride(p);
    for (std::int64_t i = 0; i < outputs.n_rows; ++i) {
      const auto v = panel[i * stride].v;
      squared_norm_[i] += total(v * v);
      sum_of_all_[p].v += v;
    }
  }
}

template <class L>
double FactorScorer<L>::enter(Rows rows, double total_weight) {
  node_ = rows;
  tried_.clear();
  const bool derived = find_sum(rows);
  double variance = measure(rows, total_weight);
  const double size = std::sqrt(total_weight * scale_);  // bounds the norm of any partial sum
  // After a loss of digits, or with large rounding errors in the branch, the sum is computed
  // directly.
  if (derived && (variance < 1e-2 * scale_ || noise_ > kMaxNoise * size)) {
    sums(outputs_, rows, weight_.data(), sum_.data());
    variance = measure(rows, total_weight);
    noise_ = 0.0;
  }
  noise_ += size;
  remember(rows);
  if (variance > 1e-6 * scale_) return variance;

  // Most digits are lost by cancellation: sum the squares around the mean instead.
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

// Finds the sum over the node. It may be known from the search in its parent. Otherwise, if the
// node is more than half of a branch that contains it, its sum is that of the branch minus that of
// the other rows. Returns true in this last case.
template <class L>
bool FactorScorer<L>::find_sum(Rows rows) {
  noise_ = 0.0;
  while (n_branches_ > 0) {
    const Branch& branch = branches_[n_branches_ - 1];
    if (rows.data() < branch.rows.data() ||
        rows.data() + rows.size() > branch.rows.data() + branch.rows.size()) {
      --n_branches_;
      continue;
    }
    if (same(rows, branch.part)) {
      sum_ = branch.part_sum;
      return false;
    }
    const auto before = static_cast<std::size_t>(rows.data() - branch.rows.data());
    const std::size_t after = branch.rows.size() - before - rows.size();
    if (before + after >= rows.size()) break;
    sum_ = branch.sum;
    noise_ = branch.noise;
    for (const Rows rest : {branch.rows.first(before), branch.rows.last(after)}) {
      if (rest.empty()) continue;
      const bool known = same(rest, branch.part);
      if (!known) sums(outputs_, rest, weight_.data(), rest_.data());
      const L* const less = known ? branch.part_sum.data() : rest_.data();
      for (std::size_t p = 0; p < sum_.size(); ++p) sum_[p].v -= less[p].v;
    }
    return true;
  }
  if (plain_ && rows.size() == squared_norm_.size()) {
    sum_ = sum_of_all_;
  } else {
    sums(outputs_, rows, weight_.data(), sum_.data());
  }
  return false;
}

template <class L>
void FactorScorer<L>::remember(Rows rows) {
  if (n_branches_ == kMaxBranches) return;
  if (branches_.size() == n_branches_) branches_.emplace_back();
  Branch& branch = branches_[n_branches_++];
  branch.rows = rows;
  branch.sum = sum_;
  branch.noise = noise_;
  branch.part = {};
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
  if (plain_) {
    for (const auto i : rows) scale_ += squared_norm_[i];
  } else {
    for (const auto i : rows) scale_ += weight_[i] * squared_norm_[i];
  }
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
                                   double* norms) {
  tried_.clear();
  for (const Rows some : rows) tried_.push_back({some, some});
  tried_sums_.resize(rows.size() * mean_.size());
  if (plain_) {
    plain_subsets(outputs_, mean_.data(), node_, tried_, subset_weight, tried_sums_.data(), norms);
  } else {
    subsets(outputs_, mean_.data(), node_, tried_, weight_.data(), subset_weight,
            tried_sums_.data(), norms);
  }
}

template <class L>
void FactorScorer<L>::split(Rows left, Rows right) {
  const Rows whole(left.data(), left.size() + right.size());
  const bool current =
      n_branches_ > 0 && same(whole, node_) && same(whole, branches_[n_branches_ - 1].rows);
  const Rows smaller = left.size() <= right.size() ? left : right;
  for (std::size_t s = 0; current && s < tried_.size(); ++s) {
    if (!std::ranges::equal(tried_[s].rows, smaller)) continue;
    Branch& branch = branches_[n_branches_ - 1];
    branch.part = smaller;
    const auto sum = tried_sums_.begin() + static_cast<std::ptrdiff_t>(s * sum_.size());
    branch.part_sum.assign(sum, sum + static_cast<std::ptrdiff_t>(sum_.size()));
    return;
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
