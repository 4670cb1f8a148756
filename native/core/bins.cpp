#include "core/bins.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/parallel.hpp"
#include "core/random.hpp"

namespace okforest {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The quantiles are those of at most this many rows.
constexpr std::int64_t kMostSampled = 200'000;

// The rows whose values decide the boundaries: one from each of as many equal parts.
std::vector<std::int32_t> sample_rows(const std::vector<std::int32_t>& used, std::uint64_t seed) {
  const auto n = static_cast<std::int64_t>(used.size());
  if (n <= kMostSampled) return used;
  std::vector<std::int32_t> sampled(static_cast<std::size_t>(kMostSampled));
  Rng rng(derive(seed, 4));
  for (std::int64_t k = 0; k < kMostSampled; ++k) {
    const std::int64_t begin = k * n / kMostSampled, end = (k + 1) * n / kMostSampled;
    sampled[k] = used[begin + rng.below(static_cast<std::uint32_t>(end - begin))];
  }
  return sampled;
}

// A value of a feature, and the total weight of its rows.
using Weighted = std::pair<double, double>;

// The distinct values, ascending, of some rows.
std::vector<Weighted> distinct(std::vector<Weighted>& values) {
  // Plain numbers are sorted in half of the time.
  const double weight = values.empty() ? 1.0 : values[0].second;
  std::vector<Weighted> merged;
  const auto add = [&](double value, double of) {
    if (merged.empty() || merged.back().first != value) merged.push_back({value, 0.0});
    merged.back().second += of;
  };
  if (std::ranges::all_of(values, [&](const Weighted& v) { return v.second == weight; })) {
    std::vector<double> sorted(values.size());
    std::ranges::transform(values, sorted.begin(), &Weighted::first);
    std::ranges::sort(sorted);
    for (const double value : sorted) add(value, weight);
  } else {
    std::ranges::sort(values, {}, &Weighted::first);
    for (const auto& [value, of] : values) add(value, of);
  }
  return merged;
}

// The largest values of all bins but the last, replaced by thresholds between neighbours. A bin is
// closed when it has its share of the weight that is left, to the nearest value.
std::vector<double> edges_of(const std::vector<Weighted>& values, std::int32_t most) {
  std::vector<double> edges;
  const bool all = values.size() <= static_cast<std::size_t>(most);
  double left = 0.0;  // weight of the values of this bin and of later ones
  for (const auto& [value, weight] : values) left += weight;
  double filled = 0.0;
  for (std::size_t k = 0; k + 1 < values.size(); ++k) {
    filled += values[k].second;
    const auto n_left = most - static_cast<std::int32_t>(edges.size());
    const bool closes = n_left > 1 && filled + values[k + 1].second / 2 > left / n_left;
    if (!all && !closes) continue;
    edges.push_back(threshold_between(values[k].first, values[k + 1].first));
    left -= filled;
    filled = 0.0;
  }
  return edges;
}

// Rows whose values are looked up together: their steps do not wait for each other.
constexpr std::int64_t kRows = 256;

// The numbers of edges below some values, without branches. Missing values are below the first.
void find_bins(std::span<const double> values, const std::vector<double>& edges,
               std::int32_t* bins) {
  std::fill_n(bins, values.size(), 0);
  if (edges.empty()) return;
  const double* const edge = edges.data();
  for (auto n = static_cast<std::int32_t>(edges.size()); n > 0; n = n == 1 ? 0 : n - n / 2) {
    const std::int32_t step = std::max(n / 2, 1);
    for (std::size_t k = 0; k < values.size(); ++k) {
      bins[k] += edge[bins[k] + step - 1] < values[k] ? step : 0;
    }
  }
}

}  // namespace

template <class Inputs>
Bins::Bins(const Inputs& X, std::span<const double> row_weight, std::int32_t most,
           std::uint64_t seed, int n_threads, Watch& watch)
    : n_rows_(X.n_rows), edges_(X.n_cols), low_(X.n_cols), high_(X.n_cols) {
  std::vector<std::int32_t> used;
  for (std::int32_t i = 0; i < n_rows_; ++i) (row_weight[i] > 0.0 ? used : unused_).push_back(i);
  const std::vector<std::int32_t> sampled = sample_rows(used, seed);
  codes_.resize(static_cast<std::size_t>(n_tiles() * kTile * n_rows_));
  parallel_for(X.n_cols, n_threads, watch, [&](std::int64_t feature, Pace& pace) {
    std::vector<Weighted> values;
    values.reserve(sampled.size());
    for (const auto i : sampled) {
      const double x = X(i, feature);
      if (!std::isnan(x)) values.push_back({x, row_weight[i]});
    }
    pace.advance(static_cast<std::int64_t>(values.size()));
    if (values.empty()) return;
    edges_[feature] = edges_of(distinct(values), most);
    low_[feature].assign(edges_[feature].size() + 1, kInfinity);
    high_[feature].assign(low_[feature].size(), -kInfinity);
  });
  parallel_for(n_tiles(), n_threads, watch, [&](std::int64_t tile, Pace& pace) {
    const std::int64_t first = tile * kTile, end = std::min(first + kTile, n_features());
    double values[kRows];
    std::int32_t bins[kRows];
    for (std::int64_t begin = 0; begin < n_rows_; begin += kRows) {
      const std::int64_t n = std::min(kRows, n_rows_ - begin);
      for (std::int64_t feature = first; feature < end; ++feature) {
        std::uint8_t* const out =
            codes_.data() + (first * n_rows_ + begin * kTile) + feature - first;
        double *const low = low_[feature].data(), *const high = high_[feature].data();
        const auto missing = static_cast<std::int32_t>(low_[feature].size());
        for (std::int64_t k = 0; k < n; ++k) values[k] = X(begin + k, feature);
        find_bins({values, static_cast<std::size_t>(n)}, edges_[feature], bins);
        for (std::int64_t k = 0; k < n; ++k) {
          const bool known = !std::isnan(values[k]) && missing > 0;
          out[k * kTile] = static_cast<std::uint8_t>(known ? bins[k] : missing);
          if (!known || !(row_weight[begin + k] > 0.0)) continue;
          low[bins[k]] = std::min(low[bins[k]], values[k]);
          high[bins[k]] = std::max(high[bins[k]], values[k]);
        }
      }
      pace.advance(4 * n * kTile);
    }
  });
  unused_values_.resize(unused_.size() * edges_.size());
  for (std::size_t k = 0; k < unused_.size(); ++k) {
    for (std::int64_t j = 0; j < X.n_cols; ++j) {
      unused_values_[k * edges_.size() + j] = X(unused_[k], j);
    }
  }
}

Bins::Cut Bins::cut_between(std::int32_t feature, std::int32_t lower, std::int32_t upper) const {
  if (upper == n_bins(feature)) return {upper - 1, kInfinity};
  const std::vector<double>&low = low_[feature], &high = high_[feature];
  const double threshold = threshold_between(high[lower], low[upper]);
  std::int32_t last = lower;
  while (last + 1 < upper && high[last + 1] <= threshold) ++last;
  if (low[last + 1] > threshold) return {last, threshold};
  return {last, threshold_between(high[last], low[last + 1])};
}

template Bins::Bins(const DenseInputs<std::uint8_t>&, std::span<const double>, std::int32_t,
                    std::uint64_t, int, Watch&);
template Bins::Bins(const DenseInputs<float>&, std::span<const double>, std::int32_t, std::uint64_t,
                    int, Watch&);
template Bins::Bins(const DenseInputs<double>&, std::span<const double>, std::int32_t,
                    std::uint64_t, int, Watch&);

}  // namespace okforest
