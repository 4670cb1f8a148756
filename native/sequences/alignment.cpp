#include "sequences/alignment.hpp"

#include <cmath>
#include <limits>
#include <utility>  // for std::swap
#include <vector>

namespace okforest {

namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();  // the logarithm of 0

double log_sum(double a, double b, double c) {
  if (a < b) std::swap(a, b);
  if (a < c) std::swap(a, c);
  if (a == kNone) return kNone;
  return a + std::log1p(std::exp(b - a) + std::exp(c - a));
}

}  // namespace

// row[j + 1] is the logarithm of the sum over the alignments of the values of u so far and the
// first j + 1 values of v.
double log_alignment(Curve u, Curve v, double sigma, std::vector<double>& row, Pace& pace) {
  const double scale = 1.0 / (2.0 * sigma * sigma);
  row.assign(v.size() + 1, kNone);
  row[0] = 0.0;
  for (const double value : u) {
    double diagonal = row[0];
    row[0] = kNone;
    for (std::size_t j = 0; j < v.size(); ++j) {
      const double square = (value - v[j]) * (value - v[j]) * scale;
      const double similarity = -square - std::log(2.0 - std::exp(-square));
      const double reached = log_sum(row[j], row[j + 1], diagonal);
      diagonal = row[j + 1];
      row[j + 1] = similarity + reached;
    }
    pace.advance(static_cast<std::int64_t>(row.size()));
  }
  return row.back();
}

}  // namespace okforest
