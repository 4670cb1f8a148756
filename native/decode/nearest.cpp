#include "decode/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.hpp"

namespace okforest {

namespace {

constexpr std::int64_t kRowsOfTask = 128;
constexpr std::int64_t kPanel = FloatFactor::most_packs * FloatFactor::lanes;

// From this many candidates on, whole rows of the Gram matrix are added up in float64.
constexpr std::size_t kMany = 32;

// Searches the candidates for some rows at a time: a panel of the float32 Gram matrix stays in
// cache while all of them use it.
class NearestSearch {
 public:
  NearestSearch(const WeightsView& weights, const CandidatesView& candidates)
      : weights_(weights), candidates_(candidates), inner_(candidates.squares.size()) {
    for (std::size_t c = 0; c < candidates.squares.size(); ++c) {
      const double half = std::abs(candidates.half_squares[c]);
      largest_half_ = half <= largest_half_ ? largest_half_ : half;
      if (std::isnan(half)) largest_half_ = std::numeric_limits<double>::infinity();
    }
  }

  void search(std::int64_t first, std::int64_t last, Nearest& result, Pace& pace) {
    queries_.resize(static_cast<std::size_t>(last - first));
    places_.clear();
    shares_.clear();
    for (std::int64_t i = first; i < last; ++i) queries_[i - first].begin(read(i));
    for (std::int64_t p = 0; p < candidates_.floats.n_packs; p += FloatFactor::most_packs) {
      const float* const panel = candidates_.floats.group(p);
      std::size_t entry = 0;
      for (std::int64_t i = first; i < last; ++i) {
        const std::size_t n = n_entries(i);
        score(queries_[i - first], panel, p * FloatFactor::lanes, entry, n);
        entry += n;
        pace.advance(static_cast<std::int64_t>(n));
      }
    }
    for (std::int64_t i = first; i < last; ++i) decide(i, queries_[i - first], result, pace);
  }

 private:
  struct Found {
    float score;
    std::int32_t candidate;
  };

  // A score is <c, F> - <c, c> / 2, on the scale of the float32 matrix. Two scores differ in
  // float32 by less than in float64 plus `band`; it is infinite if float32 does not tell scores
  // apart.
  struct Query {
    double band, best;
    std::vector<Found> found;

    void begin(double width) {
      band = width;
      best = -std::numeric_limits<double>::infinity();
      found.clear();
    }
  };

  std::size_t n_entries(std::int64_t i) const {
    return static_cast<std::size_t>(weights_.offsets[i + 1] - weights_.offsets[i]);
  }

  // Copies the weights of a row as float32, and returns the band of its scores. With u the unit
  // roundoff, a score of n terms of total size S is off by u ((n + 4) S + 2 h), where h is the
  // largest half square, and by one denormal for each rounded number.
  double read(std::int64_t i) {
    double total = 0.0;
    for (std::int64_t k = weights_.offsets[i]; k < weights_.offsets[i + 1]; ++k) {
      places_.push_back(weights_.places[weights_.columns[k]]);
      shares_.push_back(static_cast<float>(weights_.values[k]));
      total += std::abs(weights_.values[k]);
    }
    constexpr double unit = 0x1p-24, denormal = 0x1p-148, most_terms = 1 << 17, most = 1e30;
    const auto n = static_cast<double>(n_entries(i));
    const double size = total * candidates_.largest;
    if (!(n < most_terms && total < most && size < most && largest_half_ < most)) {
      return std::numeric_limits<double>::infinity();
    }
    const double rounding = unit * ((n + 4.0) * size + 2.0 * largest_half_);
    return 2.0 * (1.02 * rounding + n * denormal * (1.0 + total + candidates_.largest));
  }

  // Scores a panel of candidates, and keeps those that may be the best.
  void score(Query& query, const float* panel, std::int64_t begin, std::size_t entry,
             std::size_t n) {
    if (std::isinf(query.band)) return;
    alignas(64) float scores[kPanel];
    const double largest =
        kernels().panel_scores(panel, places_.data() + entry, shares_.data() + entry, n,
                               candidates_.half_squares.data() + begin, scores);
    if (largest < query.best - query.band) return;
    query.best = std::max(query.best, largest);
    const std::int64_t end = std::min<std::int64_t>(kPanel, candidates_.gram.n_cols - begin);
    for (std::int64_t j = 0; j < end; ++j) {
      if (scores[j] >= query.best - query.band) {
        query.found.push_back({scores[j], static_cast<std::int32_t>(begin + j)});
      }
    }
  }

  // Compares the candidates that remain in float64.
  void decide(std::int64_t i, Query& query, Nearest& result, Pace& pace) {
    std::erase_if(query.found, [&](const Found& f) { return f.score < query.best - query.band; });
    std::int64_t best = -1;
    double least = 0.0;
    const auto compare = [&](std::int64_t candidate, double inner) {
      const double cost = candidates_.squares[candidate] - 2.0 * inner;
      // As NumPy does, the first that is not a number, if there is one.
      if (best < 0 || cost < least || (std::isnan(cost) && !std::isnan(least))) {
        best = candidate;
        least = cost;
      }
    };
    if (std::isinf(query.band) || query.found.size() >= kMany) {
      add_up(i, pace);
      for (std::size_t c = 0; c < inner_.size(); ++c) {
        compare(static_cast<std::int64_t>(c), inner_[c]);
      }
    } else {
      for (const Found& f : query.found) compare(f.candidate, inner_product(i, f.candidate));
    }
    result.candidates[i] = best;
    result.costs[i] = least;
  }

  // The inner products of a prediction with all candidates, or with one: in the same order.
  void add_up(std::int64_t i, Pace& pace) {
    std::fill(inner_.begin(), inner_.end(), 0.0);
    for (std::int64_t k = weights_.offsets[i]; k < weights_.offsets[i + 1]; ++k) {
      const double* const row = candidates_.gram.row(weights_.places[weights_.columns[k]]);
      kernels().add_scaled(inner_.data(), row, weights_.values[k], candidates_.gram.n_cols);
      pace.advance(candidates_.gram.n_cols);
    }
  }

  double inner_product(std::int64_t i, std::int64_t candidate) const {
    double sum = 0.0;
    for (std::int64_t k = weights_.offsets[i]; k < weights_.offsets[i + 1]; ++k) {
      const double* const row = candidates_.gram.row(weights_.places[weights_.columns[k]]);
      sum += weights_.values[k] * row[candidate];
    }
    return sum;
  }

  const WeightsView& weights_;
  const CandidatesView& candidates_;
  double largest_half_ = 0.0;
  std::vector<double> inner_;
  std::vector<Query> queries_;
  std::vector<std::int32_t> places_;
  std::vector<float> shares_;
};

}  // namespace

Nearest find_nearest(const WeightsView& weights, const CandidatesView& candidates, int n_threads,
                     Watch& watch) {
  const std::int64_t n = weights.n_rows();
  Nearest result{std::vector<std::int64_t>(static_cast<std::size_t>(n)),
                 std::vector<double>(static_cast<std::size_t>(n))};
  const auto search = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    NearestSearch(weights, candidates).search(begin, end, result, pace);
  };
  parallel_blocks(n, kRowsOfTask, n_threads, watch, search);
  return result;
}

}  // namespace okforest
