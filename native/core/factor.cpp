#include "core/factor.hpp"

#include <algorithm>
#include <cmath>

#include "core/gathered_sum.hpp"

namespace okforest {

namespace {

// Rounding errors of a search, as a fraction of the sum of w_i ||phi_i||: of a value, its weight,
// their product, the additions in a block, and the norm.
constexpr double kSearchError = (kRowBlock + 24) * 0x1.0p-24;

// Below this fraction of its scale, a variance has lost too many digits by cancellation for a
// search in float32.
constexpr double kSearchable = 50 * kSearchError * kSearchError;

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

FactorOutputs::FactorOutputs(const MatrixView& phi, Pace& pace)
    : n_rows_(phi.n_rows),
      rank_(phi.n_cols),
      n_cols_(rank_ == 1 ? 1 : round_up(rank_, 8)),
      data_(phi.data),
      squared_norm_(static_cast<std::size_t>(n_rows_), 0.0) {
  if (n_cols_ != rank_) padded_.resize(static_cast<std::size_t>(n_rows_ * n_cols_), 0.0);
  double largest = 0.0;
  for (std::int64_t i = 0; i < n_rows_; ++i) {
    for (std::int64_t j = 0; j < rank_; ++j) {
      const double x = phi.row(i)[j];
      squared_norm_[i] += x * x;
      largest = std::max(largest, std::abs(x));
      if (!padded_.empty()) padded_[static_cast<std::size_t>(i * n_cols_ + j)] = x;
    }
    pace.advance(rank_);
  }
  if (!padded_.empty()) data_ = padded_.data();
  // For one output, float32 does not pay off.
  if (rank_ == 1 || !fits_floats(largest * largest, 1.0)) return;
  const std::int64_t n_packs = round_up(rank_, FloatFactor::lanes) / FloatFactor::lanes;
  floats_.resize(static_cast<std::size_t>(n_rows_ * n_packs * FloatFactor::lanes), 0.0f);
  float_factor_ = {floats_.data(), n_rows_, n_packs};
  for (std::int64_t p = 0; p < float_factor_.n_packs; p += FloatFactor::most_packs) {
    const std::int64_t width = float_factor_.group_packs(p) * FloatFactor::lanes;
    const std::int64_t first = p * FloatFactor::lanes, last = std::min(rank_, first + width);
    float* out = floats_.data() + first * n_rows_;
    for (std::int64_t i = 0; i < n_rows_; ++i, out += width) {
      for (std::int64_t j = first; j < last; ++j)
        out[j - first] = static_cast<float>(phi.row(i)[j]);
      pace.advance(width);
    }
  }
}

void FactorScorer::begin(std::span<const double> weight, Rows rows) {
  ScorerDefaults::begin(weight, rows);
  sum_.resize(static_cast<std::size_t>(outputs_.n_cols()));
  if (plain() || outputs_.floats() == nullptr) return;
  float_weight_.resize(weight.size());
  for (const auto i : rows) float_weight_[i] = static_cast<float>(weight[i]);
}

void FactorScorer::sum_over(Rows rows, double* sum) {
  const double* const values = outputs_.data();
  if (outputs_.n_cols() == 1) {
    const auto value = [&](std::size_t k) { return weight_of(rows[k]) * values[rows[k]]; };
    *sum = gathered_sum(value, rows.size());
    return;
  }
  kernels().sum_rows(values, outputs_.n_cols(), rows, weights_of(rows), sum);
}

// Finds the sum over a node; returns whether it is a difference of known sums.
bool FactorScorer::find_sum(Rows rows, const Frame* parent, Frame& frame) {
  frame.sum.resize(static_cast<std::size_t>(outputs_.n_cols()));
  if (parent != nullptr && !parent->part.empty()) {
    frame.sum = parent->part_sum;
    if (rows.data() == parent->part.data() && rows.size() == parent->part.size()) return false;
    for (std::size_t j = 0; j < frame.sum.size(); ++j) {
      frame.sum[j] = parent->sum[j] - parent->part_sum[j];
    }
    return true;
  }
  const bool of_all = plain() && static_cast<std::int64_t>(rows.size()) == outputs_.n_rows();
  if (of_all && !root_sum_.empty()) {
    frame.sum = root_sum_;
    return false;
  }
  sum_over(rows, frame.sum.data());
  if (of_all) root_sum_ = frame.sum;
  return false;
}

void FactorScorer::enter(Node& node, Rows rows, const Frame* parent, Frame& frame) {
  if (outputs_.rank() == 0) return;  // trees that ignore the outputs
  frame.mean.resize(static_cast<std::size_t>(outputs_.n_cols()));
  frame.part = {};
  const bool derived = find_sum(rows, parent, frame);
  measure(node, rows, frame);
  frame.size = node.weight * node.scale;
  if (derived && (node.variance < kLoss * node.scale || frame.size < kLoss * parent->size)) {
    sum_over(rows, frame.sum.data());
    measure(node, rows, frame);
  }
  if (node.variance <= 1e-6 * node.scale) {
    // Most digits are lost by cancellation: sum the squares around the mean instead.
    node.variance = 0.0;
    for (const auto i : rows) {
      node.variance += weight_of(i) * kernels().squared_distance(outputs_.row(i), frame.mean.data(),
                                                                 1.0, outputs_.n_cols());
    }
  }
  if (node.variance <= node.rounding()) node.variance = 0.0;  // equal outputs
  if (outputs_.floats() != nullptr) {
    frame.float_mean.resize(outputs_.floats()->n_packs * FloatFactor::lanes, 0.0f);
    std::ranges::copy(frame.mean, frame.float_mean.begin());
  }
  node.noise = std::max(kNoise * node.variance, node.vector_noise());
}

// Finds the scale, the mean and the total variance of a node, given its sum.
void FactorScorer::measure(Node& node, Rows rows, Frame& frame) const {
  double sum_norm = 0.0;
  for (std::size_t j = 0; j < frame.sum.size(); ++j) {
    sum_norm += frame.sum[j] * frame.sum[j];
    frame.mean[j] = frame.sum[j] / node.weight;
  }
  const auto square = [&](std::size_t k) {
    return weight_of(rows[k]) * outputs_.squared_norms()[rows[k]];
  };
  node.scale = gathered_sum(square, rows.size());
  node.variance = node.scale - sum_norm / node.weight;
}

void FactorScorer::divide(Frame* frame, Rows left, Rows right) {
  if (frame == nullptr || outputs_.rank() == 0) return;
  frame->part = left.size() <= right.size() ? left : right;
  frame->part_sum.resize(frame->sum.size());
  sum_over(frame->part, frame->part_sum.data());
}

Precision FactorScorer::search_sides(const Node& node, Rows rows, const Frame& frame,
                                     std::span<const Side> sides, double* norms) {
  if (outputs_.floats() == nullptr || node.variance < kSearchable * node.scale ||
      !fits_floats(node.scale, node.lightest)) {
    return ScorerDefaults::search_sides(node, rows, frame, sides, norms);
  }
  if (side_sums_.size() < sides.size()) side_sums_.resize(sides.size());
  kernels().side_norms(*outputs_.floats(), rows, sides, plain() ? nullptr : float_weight_.data(),
                       frame.float_mean.data(), side_sums_.data(), norms);
  return {.root = kSearchError * kSearchError * node.scale};
}

bool FactorScorer::row_values(Rows rows, const Frame& frame, double* values) const {
  if (outputs_.n_cols() != 1) return false;
  for (const auto i : rows) {
    *values++ = weight_of(i) * (outputs_.data()[i] - frame.mean[0]);
  }
  return true;
}

double FactorScorer::set_norm(const Frame& frame, Rows rows, double weight) {
  sum_over(rows, sum_.data());
  return kernels().squared_distance(sum_.data(), frame.mean.data(), weight, outputs_.n_cols());
}

Precision FactorScorer::prefix_norms(const Node&, Rows, const Frame& frame,
                                     std::span<const Prefixes> lists, bool, double* norms) {
  for (const Prefixes& list : lists) {
    if (outputs_.n_cols() > 1) {
      kernels().prefix_norms(outputs_.data(), outputs_.n_cols(), list.rows, list.lengths,
                             weight_.data(), frame.mean.data(), norms);
      norms += list.lengths.size();
      continue;
    }
    const double *const y = outputs_.data(), mean = frame.mean[0];
    double sum = 0.0;
    std::int32_t k = 0;
    for (const auto length : list.lengths) {
      for (; k < length; ++k) {
        const auto i = list.rows[k];
        sum += plain() ? y[i] - mean : weight_[i] * (y[i] - mean);
      }
      *norms++ = sum * sum;
    }
  }
  return {};
}

void FactorScorer::group_sums(const Frame& frame, Rows rows, Rows group,
                              std::span<const double> group_weight, std::span<double> sums) {
  const std::size_t width = frame.mean.size();
  for (std::size_t k = 0; k < rows.size(); ++k) {
    kernels().add_scaled(&sums[group[k] * width], outputs_.data() + rows[k] * outputs_.n_cols(),
                         weight_of(rows[k]), outputs_.n_cols());
  }
  centre_groups(frame.mean, group_weight, sums);
}

}  // namespace okforest
