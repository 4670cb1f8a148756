// The factor form while a node has many rows, and the Gram form below: a node of n rows costs
// n * rank a sweep from Phi and n^2 from its Gram matrix, which is computed once for a whole
// branch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/gram.hpp"
#include "core/panels.hpp"

namespace okforest {

// Scores the splits of one node at a time, by the cheaper form; see FactorScorer for the methods.
class HybridScorer {
 public:
  using Outputs = Panels<Lanes>;

  // Branches of at most `most_rows` rows are scored from their Gram matrix. Nodes of a branch must
  // be entered one after the other, as they are depth first, and their rows lie within the
  // branch's.
  HybridScorer(const Outputs& outputs, std::int64_t most_rows);

  void begin(std::span<const double> weight);
  double enter(std::span<const std::int32_t> rows, double total_weight);
  double scale() const { return in_branch_ ? gram_.scale() : factor_.scale(); }
  void prefix_norms(std::span<const Prefixes> lists, double* norms);
  void subset_norms(std::span<const std::span<const std::int32_t>> subsets,
                    const double* subset_weight, double* norms);
  void split(std::span<const std::int32_t> left, std::span<const std::int32_t> right) {
    if (!in_branch_) factor_.split(left, right);
  }
  void group_gram(std::span<const std::int32_t> rows, std::span<const std::int32_t> group,
                  std::span<const double> group_weight, std::span<double> gram) const;
  bool row_gram(std::span<const std::int32_t> rows, double* gram) {
    return in_branch_ && gram_.row_gram(rows, gram);
  }

 private:
  void make_branch(std::span<const std::int32_t> rows);

  const Outputs& outputs_;
  const std::int64_t most_rows_;
  FactorScorer<Lanes> factor_;
  GramScorer gram_;
  bool in_branch_ = false;                // whether the current node is scored from the Gram matrix
  std::span<const std::int32_t> branch_;  // the rows of the branch: a part of the tree's
  std::vector<std::int32_t> home_;        // training row -> its row of the branch's Gram matrix
  std::vector<double> branch_gram_;
  std::vector<Lanes> packed_;  // the branch's rows of Phi
};

}  // namespace okforest
