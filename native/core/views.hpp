// Array views: what the core sees of the caller's memory. Nothing here owns anything.
#pragma once

#include <cstdint>
#include <span>

namespace okforest {

// The inputs X, in either precision and any layout; strides are counted in elements.
template <class T>
struct InputView {
  const T* data;
  std::int64_t n_rows;
  std::int64_t n_cols;
  std::int64_t row_stride;
  std::int64_t col_stride;

  T operator()(std::int64_t row, std::int64_t col) const {
    return data[row * row_stride + col * col_stride];
  }
};

// A row-major matrix of float64: the factor of the outputs (N x rank) or their Gram matrix (N x N).
struct MatrixView {
  const double* data;
  std::int64_t n_rows;
  std::int64_t n_cols;

  const double* row(std::int64_t i) const { return data + i * n_cols; }
};

// A fitted forest: its trees one after the other. Node and member indices count from the start
// of their own tree. A node's right child follows its left child.
struct ForestView {
  std::span<const std::int64_t> node_offsets;    // n_trees + 1
  std::span<const std::int64_t> member_offsets;  // n_trees + 1
  std::span<const std::int32_t> feature;         // per node; -1 in a leaf
  std::span<const double> threshold;             // per node; x <= threshold goes left
  std::span<const std::int32_t> left;            // per node; -1 in a leaf
  std::span<const double> weight;                // per node: total weight of its members
  std::span<const std::int32_t> begin;           // per node: its range of members
  std::span<const std::int32_t> end;
  std::span<const std::int32_t> members;  // training rows, grouped by node
  std::span<const double> row_weight;     // per training row: the weight of one membership

  std::int64_t n_trees() const { return static_cast<std::int64_t>(node_offsets.size()) - 1; }
};

}  // namespace okforest
