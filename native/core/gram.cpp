#include "core/gram.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>

#include "core/dispatch.hpp"

namespace okforest {

namespace {

using Rows = std::span<const std::int32_t>;

// A branch gets its own block if the current matrix has at least kShrink times its rows. Matrices
// of up to kSmall rows stay in cache as they are.
constexpr std::int64_t kShrink = 3;
constexpr std::int64_t kSmall = 64;

// Number of lists swept together: each row of the matrix is read once for all of them.
constexpr std::size_t kTile = 4;

// For a list of fewer than 1 / kScarce of the node's rows, single entries of the matrix are
// gathered. For a longer list, reading whole rows is faster.
constexpr std::size_t kScarce = 3;

// For each list of the tile, sums the entries of a row whose rank in the list is below a limit.
OKFOREST_CLONES void sums_below(const Lanes* row, const Lanes* const rank[kTile], std::size_t n,
                                const double limit[kTile], double sums[kTile]) {
  Lanes::Vector sum[kTile] = {};
  for (std::size_t j = 0; j < n; ++j) {
    const auto k = row[j].v;
    for (std::size_t a = 0; a < kTile; ++a) {
      sum[a] = rank[a][j].v < limit[a] ? sum[a] + k : sum[a];
    }
  }
  for (std::size_t a = 0; a < kTile; ++a) sums[a] = total(sum[a]);
}

OKFOREST_CLONES void multiply(const double* a, const double* b, std::size_t n, double* out) {
  for (std::size_t j = 0; j < n; ++j) out[j] = a[j] * b[j];
}

// The weighted sum of n rows of a matrix.
OKFOREST_CLONES void sum_of_rows(const double* matrix, std::int64_t width,
                                 const std::int32_t* place, const double* weight, std::size_t n,
                                 double* sum) {
  std::fill_n(sum, width, 0.0);
  const auto row = [&](std::size_t k) { return matrix + place[k] * width; };
  std::size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    const double *a = row(k), *b = row(k + 1), *c = row(k + 2), *d = row(k + 3);
    const double u = weight[k], v = weight[k + 1], w = weight[k + 2], x = weight[k + 3];
    for (std::int64_t j = 0; j < width; ++j) {
      sum[j] += (u * a[j] + v * b[j]) + (w * c[j] + x * d[j]);
    }
  }
  for (; k < n; ++k) {
    const double *a = row(k), u = weight[k];
    for (std::int64_t j = 0; j < width; ++j) sum[j] += u * a[j];
  }
}

// The sum of scale[b] * row[place[b]]; with `plain`, the sum of row[place[b]].
template <bool plain>
double gathered_dot(const double* row, const std::int32_t* place, const double* scale,
                    std::size_t n) {
  const auto term = [&](std::size_t b) { return plain ? row[place[b]] : scale[b] * row[place[b]]; };
  double sums[4] = {};
  std::size_t b = 0;
  for (; b + 4 <= n; b += 4) {
    for (int c = 0; c < 4; ++c) sums[c] += term(b + c);
  }
  for (; b < n; ++b) sums[0] += term(b);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

GramScorer::GramScorer(const Outputs& gram) : GramScorer(gram.n_rows) {
  bases_[0].own_home.resize(inner_.size());
  std::iota(bases_[0].own_home.begin(), bases_[0].own_home.end(), 0);
  rebase(gram, bases_[0].own_home);
}

GramScorer::GramScorer(std::int64_t n_rows)
    : bases_(1),
      place_(static_cast<std::size_t>(n_rows)),
      node_weight_(static_cast<std::size_t>(n_rows)),
      inner_(static_cast<std::size_t>(n_rows)),
      number_(static_cast<std::size_t>(n_rows)),
      subset_place_(static_cast<std::size_t>(n_rows)),
      subset_weight_(static_cast<std::size_t>(n_rows)),
      node_inner_(static_cast<std::size_t>(n_rows)) {}

void GramScorer::rebase(const MatrixView& gram, std::span<const std::int32_t> home) {
  bases_[0].data = gram.data;
  bases_[0].n = gram.n_rows;
  bases_[0].home = home.data();
  n_bases_ = 1;
  use_base();
}

void GramScorer::use_base() {
  data_ = base().data;
  width_ = base().n;
  home_ = base().home;
}

// The sum of weight * row[place] over n places.
double GramScorer::reach_of(const double* row, const std::int32_t* place, const double* weight,
                            std::size_t n) const {
  return plain_ ? gathered_dot<true>(row, place, weight, n)
                : gathered_dot<false>(row, place, weight, n);
}

double GramScorer::enter(Rows rows, double total_weight) {
  rows_ = rows;
  find_base(rows);
  const double variance = measure(rows, total_weight);
  // After a loss of many digits by cancellation, a copy of the node's block is centred on its mean.
  const bool may_pack = n_bases_ > 1 || 4 * rows.size() <= 3 * static_cast<std::size_t>(base().n);
  if (variance >= 1e-3 * scale_ || !may_pack) return std::max(0.0, variance);
  if (base().rows.data() != rows.data() || base().rows.size() != rows.size()) {
    push_block(rows);
    measure(rows, total_weight);
  }
  return centre_block(rows);
}

// Selects the smallest matrix that contains the node, or packs a block if the node is much smaller.
void GramScorer::find_base(Rows rows) {
  const auto inside = [&](Rows branch) {
    return rows.data() >= branch.data() &&
           rows.data() + rows.size() <= branch.data() + branch.size();
  };
  while (n_bases_ > 1 && !inside(base().rows)) --n_bases_;
  use_base();
  if (width_ > kSmall && kShrink * static_cast<std::int64_t>(rows.size()) <= width_) {
    push_block(rows);
  }
}

void GramScorer::push_block(Rows rows) {
  if (bases_.size() == n_bases_) bases_.emplace_back();
  Base& block = bases_[n_bases_];
  const std::size_t n = rows.size();
  if (block.own_data.size() < n * n) block.own_data.resize(n * n);
  if (block.own_home.empty()) block.own_home.resize(inner_.size());
  double* out = block.own_data.data();
  for (std::size_t k = 0; k < n; ++k) subset_place_[k] = static_cast<std::int32_t>(place(rows[k]));
  for (const auto i : rows) {
    const double* source = row(i);
    for (std::size_t k = 0; k < n; ++k) *out++ = source[subset_place_[k]];
  }
  for (std::size_t k = 0; k < n; ++k) block.own_home[rows[k]] = static_cast<std::int32_t>(k);
  block.data = block.own_data.data();
  block.n = static_cast<std::int64_t>(n);
  block.home = block.own_home.data();
  block.rows = rows;
  ++n_bases_;
  use_base();
}

// Finds the inner products with the node's mean, and returns the total variance around it.
double GramScorer::measure(Rows rows, double total_weight) {
  const std::size_t n = rows.size();
  for (std::size_t k = 0; k < n; ++k) {
    place_[k] = home_[rows[k]];
    node_weight_[k] = weight_[rows[k]];
  }
  if (static_cast<std::int64_t>(n * n) <= width_) {
    // The entries of the node are fewer than those of a whole row.
    for (std::size_t k = 0; k < n; ++k) {
      inner_[place_[k]] =
          reach_of(data_ + place_[k] * width_, place_.data(), node_weight_.data(), n);
    }
  } else {
    sum_of_rows(data_, width_, place_.data(), node_weight_.data(), n, inner_.data());
  }
  scale_ = 0.0;
  double sum_norm = 0.0;
  for (std::size_t k = 0; k < n; ++k) {
    double& inner = inner_[place_[k]];
    sum_norm += node_weight_[k] * inner;
    scale_ += node_weight_[k] * data_[place_[k] * (width_ + 1)];
    inner /= total_weight;
  }
  mean_norm_ = sum_norm / (total_weight * total_weight);
  return scale_ - sum_norm / total_weight;
}

double GramScorer::centre_block(Rows rows) {
  double variance = 0.0;
  Base& block = bases_[n_bases_ - 1];
  for (const auto i : rows) {
    double* k_i = block.own_data.data() + place(i) * block.n;
    for (const auto j : rows) k_i[place(j)] += mean_norm_ - inner(i) - inner(j);
    variance += weight_[i] * k_i[place(i)];
  }
  for (const auto i : rows) inner_[place(i)] = 0.0;
  mean_norm_ = 0.0;
  return std::max(0.0, variance);
}

void GramScorer::prefix_norms(std::span<const Prefixes> lists, double* norms) {
  std::size_t n_listed = 0;
  for (const Prefixes& list : lists) n_listed += list.rows.size();
  if (before_.size() < n_listed) before_.resize(n_listed);
  double* before = before_.data();
  longer_.clear();
  for (const Prefixes& list : lists) {
    if (kScarce * list.rows.size() >= rows_.size()) {
      longer_.push_back({list.rows, before});
    } else {
      sum_entries(list.rows, before);
    }
    before += list.rows.size();
  }
  if (!longer_.empty()) sum_rows();
  before = before_.data();
  for (const Prefixes& list : lists) {
    double norm = 0.0, weight = 0.0, inner = 0.0;
    std::int32_t k = 0;
    for (const auto length : list.lengths) {
      for (; k < length; ++k) {
        const auto i = list.rows[k];
        const double w = weight_[i];
        norm += w * (2.0 * *before++ + w * row(i)[place(i)]);
        weight += w;
        inner += w * this->inner(i);
      }
      *norms++ = centred(norm, weight, inner);
    }
  }
}

// before[a]: the weighted sum of the entries of row list[a] at the rows before it in the list.
void GramScorer::sum_entries(Rows list, double* before) {
  for (std::size_t a = 0; a < list.size(); ++a) {
    const auto i = list[a];
    before[a] = reach_of(row(i), subset_place_.data(), subset_weight_.data(), a);
    subset_place_[a] = static_cast<std::int32_t>(place(i));
    subset_weight_[a] = weight_[i];
  }
}

// The same for all longer lists together. Reads whole rows of the matrix, and sums the entries
// whose rank in a list is below that of the row.
void GramScorer::sum_rows() {
  constexpr double never = std::numeric_limits<double>::infinity();
  const std::size_t n = rows_.size();
  const std::size_t width = (n + Lanes::width - 1) / Lanes::width;
  for (std::size_t k = 0; k < n; ++k) {
    number_[rows_[k]] = static_cast<std::int32_t>(k);
    subset_place_[k] = static_cast<std::int32_t>(place(rows_[k]));
    subset_weight_[k] = weight_[rows_[k]];
  }
  const bool in_place = std::ranges::equal(std::span(subset_place_).first(n),
                                           std::views::iota(0, static_cast<std::int32_t>(n)));
  rank_.assign(longer_.size() * width, {Lanes::Vector{} + never});
  const auto ranks = [&](std::size_t g) { return numbers(&rank_[g * width]); };
  for (std::size_t g = 0; g < longer_.size(); ++g) {
    const Rows list = longer_[g].rows;
    for (std::size_t k = 0; k < list.size(); ++k) {
      ranks(g)[number_[list[k]]] = static_cast<double>(k);
    }
  }
  line_.assign(width, Lanes{});
  double* const line = numbers(line_.data());
  const Lanes* rank[kTile];
  double limit[kTile], sums[kTile];
  double* out[kTile];
  std::size_t n_filled = 0;
  const auto sum_tile = [&] {
    for (std::size_t a = n_filled; a < kTile; ++a) rank[a] = rank[0], limit[a] = -1.0;
    sums_below(line_.data(), rank, width, limit, sums);
    for (std::size_t a = 0; a < n_filled; ++a) *out[a] = sums[a];
    n_filled = 0;
  };
  for (std::size_t t = 0; t < n; ++t) {
    const double* source = row(rows_[t]);
    if (in_place) {
      multiply(source, subset_weight_.data(), n, line);
    } else {
      for (std::size_t k = 0; k < n; ++k) line[k] = subset_weight_[k] * source[subset_place_[k]];
    }
    for (std::size_t g = 0; g < longer_.size(); ++g) {
      const double own = ranks(g)[t];
      if (own == never) continue;
      rank[n_filled] = &rank_[g * width];
      limit[n_filled] = own;
      out[n_filled++] = longer_[g].before + static_cast<std::size_t>(own);
      if (n_filled == kTile) sum_tile();
    }
    if (n_filled > 0) sum_tile();
  }
}

void GramScorer::subset_norms(std::span<const Rows> subsets, const double* subset_weight,
                              double* norms) {
  for (const Rows subset : subsets) *norms++ = subset_norm(subset, *subset_weight++);
}

double GramScorer::subset_norm(Rows subset, double weight) {
  double norm = 0.0, inner = 0.0;
  for (std::size_t a = 0; a < subset.size(); ++a) {
    const auto i = subset[a];
    const double w = weight_[i];
    subset_place_[a] = static_cast<std::int32_t>(place(i));
    subset_weight_[a] = w;
    const double reach = reach_of(row(i), subset_place_.data(), subset_weight_.data(), a);
    norm += w * (2.0 * reach + w * row(i)[place(i)]);
    inner += w * this->inner(i);
  }
  return centred(norm, weight, inner);
}

bool GramScorer::row_gram(Rows rows, double* gram) {
  const std::size_t n = rows.size();
  for (std::size_t k = 0; k < n; ++k) node_inner_[k] = inner_[place_[k]];
  for (std::size_t a = 0; a < n; ++a) {
    const double* k_a = data_ + place_[a] * width_;
    const double shift = mean_norm_ - node_inner_[a];
    double* out = gram + a * n;
    for (std::size_t b = 0; b <= a; ++b) out[b] = k_a[place_[b]] + shift - node_inner_[b];
    if (plain_) continue;
    for (std::size_t b = 0; b <= a; ++b) out[b] *= node_weight_[a] * node_weight_[b];
  }
  return true;
}

void GramScorer::group_gram(Rows rows, std::span<const std::int32_t> group,
                            std::span<const double> group_weight, std::span<double> gram) const {
  const std::size_t n = group_weight.size();
  std::vector<double> inner(n, 0.0);  // <sum of a group, node mean>
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto i = rows[k];
    const double* k_i = row(i);
    inner[group[k]] += weight_[i] * this->inner(i);
    double* sums = &gram[group[k] * n];
    for (std::size_t l = 0; l < rows.size(); ++l) {
      sums[group[l]] += weight_[i] * weight_[rows[l]] * k_i[place(rows[l])];
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
