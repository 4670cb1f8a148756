// The rows that trees are grown on, with weights scaled so that their squares neither overflow nor
// vanish.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/forest.hpp"

namespace okforest {

// The rows of all trees, or those drawn for one of them: what a Sample views.
struct Rowset {
  std::vector<std::int32_t> rows;  // of positive weight
  std::vector<double> weight;      // divided by 2^exponent
  std::vector<double> count;       // empty if weights are counts
  int exponent = 0;
  bool plain = false;  // whether every weight and count is one
};

// The largest weight is scaled to [1, 2), exactly: squares of large or small weights would overflow
// or vanish.
inline Rowset rowset_of(std::span<const double> row_weight) {
  Rowset all;
  std::frexp(*std::ranges::max_element(row_weight), &all.exponent);
  --all.exponent;
  for (std::size_t i = 0; i < row_weight.size(); ++i) {
    if (row_weight[i] > 0.0) all.rows.push_back(static_cast<std::int32_t>(i));
    all.weight.push_back(std::ldexp(row_weight[i], -all.exponent));
    // In stopping rules, a row of weight 3 counts as three rows, and a row of weight 0.1 as one.
    all.count.push_back(std::max(1.0, row_weight[i]));
  }
  all.plain = std::ranges::all_of(row_weight, [](double w) { return w == 1.0; });
  return all;
}

// Multiplies the weights and variances of nodes by 2^exponent.
inline void scale_sums(Tree& tree, int exponent) {
  if (exponent == 0) return;
  for (TreeNode& node : tree.nodes) {
    node.weight = std::ldexp(node.weight, exponent);
    node.variance = std::ldexp(node.variance, exponent);
  }
}

}  // namespace okforest
