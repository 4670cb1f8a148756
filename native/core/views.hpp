// Views of the caller's arrays, which own no memory.
#pragma once

#include <cstdint>
#include <span>

#include "core/inputs.hpp"  // for Test

namespace okforest {

// A row-major matrix of float64: the factor of the outputs (N x rank) or their Gram matrix (N x N).
template <class T>
struct MatrixOf {
  T* data;
  std::int64_t n_rows;
  std::int64_t n_cols;

  T* row(std::int64_t i) const { return data + i * n_cols; }
};
using MatrixView = MatrixOf<const double>;
using MutableMatrix = MatrixOf<double>;

// A fitted forest: the arrays of its trees, concatenated. Indices of nodes, members and words count
// from the start of their own tree. A node's right child follows its left child.
struct ForestView {
  std::span<const std::int64_t> node_offsets;    // n_trees + 1
  std::span<const std::int64_t> member_offsets;  // n_trees + 1
  std::span<const std::int64_t> subset_offsets;  // n_trees + 1
  std::span<const std::int32_t> feature;         // per node; -1 in a leaf
  std::span<const double> threshold;             // per node; of a numeric test
  std::span<const bool> missing_left;            // per node
  std::span<const std::int32_t> subset;          // per node: first word of its subset; -1: numeric
  std::span<const std::uint64_t> subset_words;   // categories that go left, as bits
  std::span<const std::int32_t> left;            // per node; -1 in a leaf
  std::span<const double> weight;                // per node: total weight of its members
  std::span<const double> variance;              // per node: total variance
  std::span<const std::int32_t> begin;           // per node: its range of members
  std::span<const std::int32_t> end;
  std::span<const std::int32_t> members;       // training rows, grouped by node
  std::span<const std::int32_t> times;         // per member: how often it was drawn; empty: once
  std::span<const double> row_weight;          // per training row: the weight of one membership
  std::span<const std::int32_t> n_categories;  // per feature; 0: numeric

  std::int64_t n_trees() const { return static_cast<std::int64_t>(node_offsets.size()) - 1; }

  std::int64_t n_members(std::int64_t tree, std::int64_t node) const {
    const std::int64_t k = node_offsets[tree] + node;
    return end[k] - begin[k];
  }

  // The weight of an entry of `members`.
  double member_weight(std::int64_t m) const {
    const double drawn = times.empty() ? 1.0 : times[m];
    return drawn * row_weight[members[m]];
  }

  // Calls body(member, share) for each member of a node; the shares of its weight sum to one.
  template <class Body>
  void for_members(std::int64_t tree, std::int64_t node, Body&& body) const {
    const std::int64_t k = node_offsets[tree] + node;
    for (auto m = member_offsets[tree] + begin[k]; m < member_offsets[tree] + end[k]; ++m) {
      body(members[m], member_weight(m) / weight[k]);
    }
  }

  Test test(std::int64_t tree, std::int64_t node) const {
    const std::int64_t k = node_offsets[tree] + node;
    Test test{threshold[k], nullptr, 0, missing_left[k]};
    if (subset[k] >= 0) {
      test.words = subset_words.data() + subset_offsets[tree] + subset[k];
      test.n_categories = n_categories[feature[k]];
    }
    return test;
  }
};

// What the caller knows about the outputs; each may be empty.
struct KnownRows {
  std::span<const double> sums;           // of the rows of a Gram matrix, which save a pass over it
  std::span<const double> errors;         // squared distances between equal outputs, by rounding
  std::span<const std::int32_t> classes;  // instead of outputs, which have no columns then
};

}  // namespace okforest
