#include "core/frobenius.hpp"

#include <algorithm>
#include <cmath>

#include "core/dispatch.hpp"

namespace okforest {

namespace {

using Rows = std::span<const std::int32_t>;

OKFOREST_CLONES void add_scaled(double* __restrict sum, const double* __restrict x, double scale,
                                std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) sum[k] += scale * x[k];
}

OKFOREST_CLONES double squared_distance(const double* a, const double* b, double scale,
                                        std::int64_t n) {
  double squares[8] = {};
  std::int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    for (int c = 0; c < 8; ++c) {
      const double difference = a[k + c] - scale * b[k + c];
      squares[c] += difference * difference;
    }
  }
  for (; k < n; ++k) squares[0] += (a[k] - scale * b[k]) * (a[k] - scale * b[k]);
  return ((squares[0] + squares[1]) + (squares[2] + squares[3])) +
         ((squares[4] + squares[5]) + (squares[6] + squares[7]));
}

}  // namespace

FrobeniusScorer::FrobeniusScorer(const MatrixView& gram)
    : K_(gram),
      n_rows_(gram.n_rows),
      gram_(gram),
      coordinates_(static_cast<std::size_t>(n_rows_ * n_rows_)),
      mean_(static_cast<std::size_t>(n_rows_)),
      sum_(static_cast<std::size_t>(n_rows_)) {}

void FrobeniusScorer::begin(std::span<const double> weight) {
  weight_ = weight;
  gram_.begin(weight);
  n_coordinates_ = 0;
  // At first the root is the only leaf: the first coordinate is sqrt(W) <mean, phi_i>.
  std::vector<std::int32_t> rows;
  for (std::int32_t i = 0; i < n_rows_; ++i) {
    if (weight[i] > 0.0) rows.push_back(i);
  }
  add_coordinate(rows, {});
}

// Adds the coordinate sqrt(c) <mean over plus - mean over minus, phi_i>; c is the weight of `plus`
// if `minus` is empty.
void FrobeniusScorer::add_coordinate(Rows plus, Rows minus) {
  if (n_coordinates_ == n_rows_) return;  // there are no more leaves than rows
  double plus_weight = 0.0, minus_weight = 0.0;
  for (const auto j : plus) plus_weight += weight_[j];
  for (const auto j : minus) minus_weight += weight_[j];
  const double c =
      minus.empty() ? plus_weight : plus_weight * minus_weight / (plus_weight + minus_weight);
  std::fill(sum_.begin(), sum_.end(), 0.0);
  for (const auto j : plus) add_scaled(sum_.data(), K_.row(j), weight_[j] / plus_weight, n_rows_);
  for (const auto j : minus) {
    add_scaled(sum_.data(), K_.row(j), -weight_[j] / minus_weight, n_rows_);
  }
  for (std::int64_t i = 0; i < n_rows_; ++i) {
    coordinates_[i * n_rows_ + n_coordinates_] = std::sqrt(c) * sum_[i];
  }
  ++n_coordinates_;
}

void FrobeniusScorer::split(Rows left, Rows right) { add_coordinate(left, right); }

double FrobeniusScorer::enter(Rows rows, double total_weight) {
  total_weight_ = total_weight;
  std::fill_n(mean_.begin(), n_coordinates_, 0.0);
  for (const auto i : rows) {
    add_scaled(mean_.data(), coordinates(i), weight_[i] / total_weight, n_coordinates_);
  }
  return gram_.enter(rows, total_weight);
}

void FrobeniusScorer::add_row(std::int32_t i) {
  add_scaled(sum_.data(), coordinates(i), weight_[i], n_coordinates_);
}

// The norm of a side from its weight, its norm in the Gram form, and sum_.
double FrobeniusScorer::total(double norm, double weight) const {
  const double c = weight * (total_weight_ - weight) / total_weight_;
  const double within = squared_distance(sum_.data(), mean_.data(), weight, n_coordinates_);
  return 2.0 * within + (c > 0.0 ? norm * norm / c : 0.0);
}

void FrobeniusScorer::subset_norms(std::span<const Rows> subsets, const double* subset_weight,
                                   double* norms) {
  gram_.subset_norms(subsets, subset_weight, norms);
  for (std::size_t s = 0; s < subsets.size(); ++s) {
    std::fill_n(sum_.begin(), n_coordinates_, 0.0);
    for (const auto i : subsets[s]) add_row(i);
    norms[s] = total(norms[s], subset_weight[s]);
  }
}

void FrobeniusScorer::prefix_norms(std::span<const Prefixes> lists, double* norms) {
  gram_.prefix_norms(lists, norms);
  for (const Prefixes& list : lists) {
    std::fill_n(sum_.begin(), n_coordinates_, 0.0);
    double weight = 0.0;
    std::int32_t k = 0;
    for (const auto length : list.lengths) {
      for (; k < length; ++k) {
        add_row(list.rows[k]);
        weight += weight_[list.rows[k]];
      }
      *norms = total(*norms, weight);
      ++norms;
    }
  }
}

}  // namespace okforest
