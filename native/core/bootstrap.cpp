#include "core/bootstrap.hpp"

#include <cmath>

#include "core/random.hpp"

namespace okforest {

namespace {

// Above this mean, rejection is faster than inversion; the rejection method requires at least 10.
constexpr double kMaxInvertedMean = 10.0;

// The smallest k whose cumulative probability exceeds u. Takes about n p steps.
std::int64_t invert_binomial(std::int64_t n, double p, double u) {
  const double odds = p / (1.0 - p);
  double probability = std::exp(static_cast<double>(n) * std::log1p(-p));  // of k successes
  std::int64_t k = 0;
  // Rounding errors may keep u above the sum of all probabilities: stop in the far tail.
  while (u >= probability && probability > 0x1p-60 && k < n) {
    u -= probability;
    probability *= odds * static_cast<double>(n - k) / static_cast<double>(k + 1);
    ++k;
  }
  return k;
}

// The error of Stirling's approximation, log k! - ((k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2),
// to 3e-4 at k = 0 and to 4e-6 from there on. std::lgamma is less precise for large k, and not
// thread-safe.
double stirling_error(double k) {
  const double x = 1.0 / (k + 1.0), square = x * x;
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 * square) * square) * x;
}

// Algorithm BTRS of W. Hörmann, "The generation of binomial random variates", Journal of
// Statistical Computation and Simulation 46 (1993): transformed rejection with a squeeze, in about
// 1.2 trials whatever n and p, given that p <= 1/2 and n p >= 10.
std::int64_t reject_binomial(double n, double p, Rng& rng) {
  const double deviation = std::sqrt(n * p * (1.0 - p)), odds = p / (1.0 - p);
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((n + 1.0) * p);
  const auto log_term = [&](double k) {
    return (k + 0.5) * std::log((k + 1.0) / (odds * (n - k + 1.0)));
  };
  while (true) {
    const double u = rng.uniform() - 0.5, v = rng.uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2.0 * a / us + b) * u + n * p + 0.5);
    if (us >= 0.07 && v <= 0.92 - 4.2 / b) return static_cast<std::int64_t>(k);
    if (!(k >= 0.0 && k <= n)) continue;  // infinite if us is zero
    const double log_ratio =              // of the probabilities of k and of the mode
        log_term(mode) - log_term(k) + (n + 1.0) * std::log((n - mode + 1.0) / (n - k + 1.0)) +
        stirling_error(mode) + stirling_error(n - mode) - stirling_error(k) - stirling_error(n - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= log_ratio) return static_cast<std::int64_t>(k);
  }
}

// A binomial number for p <= 1/2, in constant expected time.
std::int64_t binomial(std::int64_t n, double p, Rng& rng) {
  const auto trials = static_cast<double>(n);
  return trials * p < kMaxInvertedMean ? invert_binomial(n, p, rng.uniform())
                                       : reject_binomial(trials, p, rng);
}

}  // namespace

Bootstrap::Bootstrap(std::span<const double> row_weight)
    : weight_(row_weight), weight_from_(row_weight.size() + 1, 0.0) {
  // Summed from the end: subtracting from the total would accumulate rounding errors.
  for (std::size_t i = row_weight.size(); i-- > 0;) {
    weight_from_[i] = row_weight[i] + weight_from_[i + 1];
  }
}

// Of the remaining draws, each row takes a binomial number, with probability its weight divided by
// the remaining weight. The last row of positive weight takes all that remain.
std::vector<std::int32_t> Bootstrap::draw(std::int32_t n_draws, std::uint64_t seed) const {
  std::vector<std::int32_t> times(weight_.size(), 0);
  std::int64_t n_left = n_draws;
  std::uint64_t position = 0;  // among the rows of positive weight
  for (std::size_t i = 0; n_left > 0; ++i) {
    if (weight_[i] == 0.0) continue;
    Rng rng(derive(seed, position++));
    const double own = weight_[i], later = weight_from_[i + 1], total = weight_from_[i];
    const std::int64_t n_own = own <= later ? binomial(n_left, own / total, rng)
                                            : n_left - binomial(n_left, later / total, rng);
    times[i] = static_cast<std::int32_t>(n_own);
    n_left -= n_own;
  }
  return times;
}

}  // namespace okforest
