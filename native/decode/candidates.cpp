#include "decode/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"

namespace okforest {

namespace {

constexpr std::int64_t kWidth = CandidatePanels::width;

// A task searches this many panels for this many queries.
constexpr std::int64_t kPanelsOfTask = 1024, kQueriesOfTask = 128;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The candidates that may be among the k of largest score <c, F> - <c, c> / 2, each known up to an
// error.
class Best {
 public:
  Best(std::int64_t k, std::int64_t most) : k_(k), most_(most) {}

  // A score below this one is not among the k largest.
  double limit() const { return limit_; }
  bool overflown() const { return overflown_; }
  void give_up() { overflown_ = true, found_.clear(); }

  void add(double score, double error, std::int64_t candidate) {
    found_.push_back({score + error, candidate});
    sure_.push_back(score - error);
    if (std::ssize(found_) >= 2 * most_ + 2 * k_) prune();
  }

  // Adds the candidates of another part of the search.
  void merge(const Best& other) {
    if (other.overflown_) give_up();
    found_.insert(found_.end(), other.found_.begin(), other.found_.end());
    sure_.insert(sure_.end(), other.sure_.begin(), other.sure_.end());
    prune();
  }

  // Raises the limit to the k-th largest score that is certain.
  void raise() {
    if (std::ssize(sure_) < k_) return;
    std::ranges::nth_element(sure_, sure_.begin() + (k_ - 1), std::greater{});
    sure_.resize(static_cast<std::size_t>(k_));
    limit_ = std::max(limit_, sure_.back());
  }

  void prune() {
    raise();
    std::erase_if(found_, [&](const Found& f) { return f.score < limit_; });
    if (std::ssize(found_) > most_) give_up();
  }

  std::vector<std::int64_t> candidates() const {
    std::vector<std::int64_t> result;
    for (const Found& f : found_) result.push_back(f.candidate);
    std::ranges::sort(result);
    return result;
  }

 private:
  struct Found {
    double score;  // at most
    std::int64_t candidate;
  };

  std::int64_t k_, most_;
  double limit_ = -kInfinity;
  bool overflown_ = false;
  std::vector<Found> found_;
  std::vector<double> sure_;  // scores, at least
};

// The queries as float32, and their norms: sums of absolute values, and Euclidean.
struct Queries {
  std::vector<float> values;
  std::vector<double> sums, norms;

  explicit Queries(const MatrixView& queries)
      : values(static_cast<std::size_t>(queries.n_rows * queries.n_cols)) {
    for (std::int64_t i = 0; i < queries.n_rows; ++i) {
      double sum = 0.0, square = 0.0;
      for (std::int64_t j = 0; j < queries.n_cols; ++j) {
        const double x = queries.row(i)[j];
        values[i * queries.n_cols + j] = static_cast<float>(x);
        sum += std::abs(x);
        square += x * x;
      }
      sums.push_back(sum);
      norms.push_back(std::sqrt(square));
    }
  }
};

// How far a score in float32 may be off. With u the unit roundoff, an inner product of d terms of
// total size S is off by u (d + 4) S at most, the half square by 2u times itself, and each rounded
// number by a denormal besides. Infinite if float32 does not tell scores apart.
double error_of(double size, double reach, double norm, std::int64_t d) {
  constexpr double unit = 0x1p-24, denormal = 0x1p-148, most_terms = 1 << 17, most = 1e30;
  const auto terms = static_cast<double>(d);
  const double square = reach * reach;
  if (!(terms < most_terms && size < most && square < most && norm < most)) return kInfinity;
  const double rounding = unit * ((terms + 4.0) * size + 2.0 * square);
  return 1.02 * rounding + (terms + 2.0) * denormal * (1.0 + norm + reach);
}

}  // namespace

template <class Panels>
Survivors near_candidates(const MatrixView& queries, const Panels& panels, std::int64_t k,
                          std::int64_t most, int n_threads, Watch& watch) {
  const std::int64_t n = queries.n_rows, d = panels.n_coordinates;
  const Queries floats(queries);
  std::vector<std::int32_t> coordinates(static_cast<std::size_t>(d));
  std::iota(coordinates.begin(), coordinates.end(), 0);
  const std::int64_t n_parts = (panels.n_panels() + kPanelsOfTask - 1) / kPanelsOfTask;
  const std::int64_t n_groups = (n + kQueriesOfTask - 1) / kQueriesOfTask;
  std::vector<Best> best(static_cast<std::size_t>(n * n_parts), Best(k, most));

  parallel_for(n_parts * n_groups, n_threads, watch, [&](std::int64_t task, Pace& pace) {
    const std::int64_t part = task / n_groups, group = task % n_groups;
    const std::int64_t last = std::min((part + 1) * kPanelsOfTask, panels.n_panels());
    const std::int64_t end = std::min((group + 1) * kQueriesOfTask, n);
    for (std::int64_t p = part * kPanelsOfTask; p < last; ++p) {  // the panel stays in cache
      for (std::int64_t i = group * kQueriesOfTask; i < end; ++i) {
        Best& own = best[i * n_parts + part];
        if (own.overflown()) continue;
        const double size = panels.size(p, floats.sums[i], floats.norms[i]);
        const double error = error_of(size, panels.reach[p], floats.norms[i], d);
        if (std::isinf(error)) {
          own.give_up();
          continue;
        }
        alignas(64) float scores[kWidth];
        const double largest = panels.scores(p, coordinates, floats.values.data() + i * d, scores);
        pace.advance(d);
        if (largest + error < own.limit()) continue;
        for (std::int64_t j = 0; j < kWidth; ++j) {
          if (scores[j] + error >= own.limit() && std::isfinite(scores[j])) {
            own.add(scores[j], error, p * kWidth + j);
          }
        }
        own.raise();
      }
    }
  });

  Survivors result;
  result.offsets.push_back(0);
  for (std::int64_t i = 0; i < n; ++i) {
    Best all(k, most);
    for (std::int64_t part = 0; part < n_parts; ++part) all.merge(best[i * n_parts + part]);
    const std::vector<std::int64_t> found =
        all.overflown() ? std::vector<std::int64_t>() : all.candidates();
    result.candidates.insert(result.candidates.end(), found.begin(), found.end());
    result.offsets.push_back(std::ssize(result.candidates));
  }
  return result;
}

template Survivors near_candidates(const MatrixView&, const VectorPanels&, std::int64_t,
                                   std::int64_t, int, Watch&);
template Survivors near_candidates(const MatrixView&, const BitPanels&, std::int64_t, std::int64_t,
                                   int, Watch&);

}  // namespace okforest
