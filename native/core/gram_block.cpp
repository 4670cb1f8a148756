#include "core/gram_block.hpp"

#include <algorithm>
#include <numeric>

#include "core/factor.hpp"

namespace okforest {

namespace {

// Of the panels of n rows, with their padding.
std::size_t n_entries(std::int64_t n) {
  return static_cast<std::size_t>(GramPanels{nullptr, n}.n_panels() * GramPanels::width * n);
}

// Copies a row of an n x n matrix.
void copy_to_panels(const double* matrix, std::int64_t n, std::int64_t row, float* panels) {
  const double* const from = matrix + row * n;
  float* to = panels + row * GramPanels::width;
  for (std::int64_t begin = 0; begin < n; begin += GramPanels::width, to += GramPanels::width * n) {
    std::copy_n(from + begin, std::min(GramPanels::width, n - begin), to);
  }
}

}  // namespace

AlignedArray<float> panels_of(const MatrixView& gram, Pace& pace) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < gram.n_rows; ++i) largest = std::max(largest, gram.row(i)[i]);
  if (!fits_floats(largest, 1.0)) return {};
  AlignedArray<float> panels(n_entries(gram.n_rows));
  for (std::int64_t i = 0; i < gram.n_rows; ++i) {
    copy_to_panels(gram.data, gram.n_rows, i, panels.data());
    pace.advance(gram.n_cols);
  }
  return panels;
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
  if (own_exact_.size() < rows.size() * rows.size()) own_exact_.resize(rows.size() * rows.size());
  if (has_floats && own_search_.size() < n_entries(n)) own_search_.resize(n_entries(n));
  if (own_home_.empty()) own_home_.resize(static_cast<std::size_t>(n_rows));
  for (std::size_t k = 0; k < rows.size(); ++k) own_home_[rows[k]] = static_cast<std::int32_t>(k);
  exact = own_exact_.data();
  search = {has_floats ? own_search_.data() : nullptr, n};
  home = own_home_.data();
}

void GramBlock::copy(const GramBlock& source, Rows rows, std::int64_t n_rows) {
  resize(rows, n_rows, source.search.data != nullptr);
  std::vector<std::int32_t> place(rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) place[k] = source.home[rows[k]];
  kernels().copy_block(source.exact, source.n, place, own_exact_.data(),
                       search.data == nullptr ? nullptr : own_search_.data());
}

void GramBlock::compute(const FactorOutputs& factor, Rows rows, std::vector<double>& packed) {
  resize(rows, factor.n_rows(), factor.floats() != nullptr);
  const std::int64_t n_cols = factor.n_cols();
  packed.resize(rows.size() * static_cast<std::size_t>(n_cols));
  double* out = packed.data();
  const double* const origin = factor.row(rows[0]);
  for (const auto i : rows) {
    const double* const row = factor.row(i);
    for (std::int64_t j = 0; j < n_cols; ++j) *out++ = row[j] - origin[j];
  }
  kernels().gram(packed.data(), n, n_cols, own_exact_.data());
  for (std::int64_t k = 0; search.data != nullptr && k < n; ++k) {
    copy_to_panels(exact, n, k, own_search_.data());
  }
}

}  // namespace okforest
