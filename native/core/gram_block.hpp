// The Gram matrix of a branch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_array.hpp"
#include "core/kernels.hpp"
#include "core/views.hpp"  // for MatrixView
#include "core/watch.hpp"

namespace okforest {

class FactorOutputs;

// A matrix of inner products and, for searches, its copy in float32, or nothing if its numbers are
// too large or too small for that.
struct GramOutputs {
  MatrixView exact;
  GramPanels search;
  std::span<const double> row_sums = {};  // if they are known
};

// The panels of a Gram matrix; empty if its numbers are too large or too small.
AlignedArray<float> panels_of(const MatrixView& gram, Pace& pace);

// All blocks of a branch and its ancestors together are small compared to K.
struct GramBlock {
  std::int64_t n = 0;
  const double* exact = nullptr;
  GramPanels search;
  const std::int32_t* home = nullptr;  // training row -> row of the block

  const double* row(std::int32_t i) const { return exact + home[i] * n; }
  double diagonal(std::int32_t i) const { return exact[home[i] * (n + 1)]; }

  // Views a matrix of all rows, which must outlive the block.
  void view(const GramOutputs& outputs);

  // Copies the part of another block that belongs to some rows.
  void copy(const GramBlock& source, Rows rows, std::int64_t n_rows);

  // Computes the inner products of some rows of Phi relative to the first of them, so that outputs
  // that hardly differ keep their digits. `packed` is scratch memory.
  void compute(const FactorOutputs& factor, Rows rows, std::vector<double>& packed);

 private:
  void resize(Rows rows, std::int64_t n_rows, bool has_floats);

  AlignedArray<double> own_exact_;  // storage, except of a view
  AlignedArray<float> own_search_;
  std::vector<std::int32_t> own_home_;
};

}  // namespace okforest
