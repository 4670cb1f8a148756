#include "core/gram_block.hpp"

#include <algorithm>
#include <numeric>

#include "core/factor.hpp"

namespace okforest {

namespace {

// Numbers of this size can be squared and added up in float32.
constexpr double kLeastFloat = 1e-30, kMostFloat = 1e30;

}  // namespace

std::vector<float> float_gram(const MatrixView& gram, Pace& pace) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < gram.n_rows; ++i) largest = std::max(largest, gram.row(i)[i]);
  if (largest < kLeastFloat || largest > kMostFloat) return {};
  std::vector<float> floats;
  floats.reserve(static_cast<std::size_t>(gram.n_rows * gram.n_cols));  // not filled with zeros
  for (std::int64_t i = 0; i < gram.n_rows; ++i) {
    floats.insert(floats.end(), gram.row(i), gram.row(i) + gram.n_cols);
    pace.advance(gram.n_cols);
  }
  return floats;
}

void GramBlock::view(const GramOutputs& outputs) {
  n = outputs.exact.n_rows;
  exact = outputs.exact.data;
  search = outputs.search;
  own_home_.resize(static_cast<std::size_t>(n));
  std::iota(own_home_.begin(), own_home_.end(), 0);
  home = own_home_.data();
}

void GramBlock::resize(Rows rows, std::int64_t n_rows, bool has_floats) {
  n = static_cast<std::int64_t>(rows.size());
  const std::size_t n_entries = rows.size() * rows.size();
  if (own_exact_.size() < n_entries) own_exact_.resize(n_entries);
  if (has_floats && own_search_.size() < n_entries) own_search_.resize(n_entries);
  if (own_home_.empty()) own_home_.resize(static_cast<std::size_t>(n_rows));
  for (std::size_t k = 0; k < rows.size(); ++k) own_home_[rows[k]] = static_cast<std::int32_t>(k);
  exact = own_exact_.data();
  search = has_floats ? own_search_.data() : nullptr;
  home = own_home_.data();
}

void GramBlock::copy(const GramBlock& source, Rows rows, std::int64_t n_rows) {
  resize(rows, n_rows, source.search != nullptr);
  std::vector<std::int32_t> place(rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) place[k] = source.home[rows[k]];
  double* out = own_exact_.data();
  for (std::size_t k = 0; k < rows.size(); ++k, out += n) {
    const double* const row = source.exact + place[k] * source.n;
    for (std::size_t l = 0; l < rows.size(); ++l) out[l] = row[place[l]];
    if (search != nullptr) std::copy_n(out, n, own_search_.data() + (out - own_exact_.data()));
  }
}

void GramBlock::compute(const FactorOutputs& factor, Rows rows, const double* origin,
                        std::vector<double>& packed) {
  resize(rows, factor.n_rows(), factor.floats() != nullptr);
  const std::int64_t n_cols = factor.n_cols();
  packed.resize(rows.size() * static_cast<std::size_t>(n_cols));
  double* out = packed.data();
  for (const auto i : rows) {
    const double* const row = factor.row(i);
    for (std::int64_t j = 0; j < n_cols; ++j) *out++ = row[j] - origin[j];
  }
  kernels().gram(packed.data(), n, n_cols, own_exact_.data());
  copy_to_floats();
}

void GramBlock::shift(const double* offset, double shift) {
  for (std::int64_t k = 0; k < n; ++k) {
    double* const row = own_exact_.data() + k * n;
    for (std::int64_t l = 0; l < n; ++l) row[l] += shift - offset[k] - offset[l];
  }
  copy_to_floats();
}

void GramBlock::copy_to_floats() {
  if (search != nullptr) std::copy_n(own_exact_.data(), n * n, own_search_.data());
}

}  // namespace okforest
