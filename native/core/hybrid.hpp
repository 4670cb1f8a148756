// The factor form for large nodes, and the Gram form for small ones. A sweep over n rows costs O(n
// * rank) from Phi, and O(n^2) from a Gram matrix, which is computed once per branch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/gram.hpp"
#include "core/panels.hpp"

namespace okforest {

// Scores the splits of one node at a time with the cheaper form; see FactorScorer for the methods.
class HybridScorer {
 public:
  using Outputs = Panels<Lanes>;

  // Branches of at most `most_rows` rows are scored from their Gram matrix. Nodes must be entered
  // depth first, and the rows of each must be a part of its parent's.
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
  std::span<const std::int32_t> branch_;  // rows of the branch, a part of the tree's
  std::vector<std::int32_t> home_;        // training row -> its row of the branch's Gram matrix
  std::vector<double> branch_gram_;
  std::vector<Lanes> packed_;  // the branch's rows of Phi
};

}  // namespace okforest
