// The factor form for large nodes, and the Gram form for small ones. A search over n rows costs O(n
// * rank) from Phi, and O(n^2) from a Gram matrix, which is computed once per branch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/factor.hpp"
#include "core/gram.hpp"

namespace okforest {

class HybridScorer : public ScorerDefaults<HybridScorer> {
 public:
  struct Frame {
    bool in_branch;  // whether the node is scored from the branch's Gram matrix
    FactorScorer::Frame factor;
    GramScorer::Frame gram;
  };

  // Branches of at most `most_rows` rows are scored from their Gram matrix. Nodes must be entered
  // depth first, with the frame of their parent.
  HybridScorer(const FactorOutputs& outputs, std::int64_t most_rows)
      : most_rows_(most_rows), factor_(outputs), gram_(outputs) {}

  void begin(std::span<const double> weight, Rows rows) {
    factor_.begin(weight, rows);
    gram_.begin(weight, rows);
  }

  void enter(Node& node, Rows rows, const Frame* parent, Frame& frame) {
    const bool inside = parent != nullptr && parent->in_branch;
    frame.in_branch = inside || static_cast<std::int64_t>(rows.size()) <= most_rows_;
    if (!frame.in_branch) {
      return factor_.enter(node, rows, parent == nullptr ? nullptr : &parent->factor, frame.factor);
    }
    if (!inside) gram_.begin_branch(rows);
    gram_.enter(node, rows, inside ? &parent->gram : nullptr, frame.gram);
  }

  void divide(Frame* frame, Rows left, Rows right) {
    if (frame == nullptr) return;
    if (frame->in_branch) return gram_.divide(&frame->gram, left, right);
    // Two new branches do not need the sums.
    if (static_cast<std::int64_t>(std::max(left.size(), right.size())) <= most_rows_) return;
    factor_.divide(&frame->factor, left, right);
  }

  Precision search_sides(const Node& node, Rows rows, const Frame& frame,
                         std::span<const Side> sides, double* norms) {
    return frame.in_branch ? gram_.search_sides(node, rows, frame.gram, sides, norms)
                           : factor_.search_sides(node, rows, frame.factor, sides, norms);
  }
  Precision prefix_norms(const Node& node, Rows rows, const Frame& frame,
                         std::span<const Prefixes> lists, bool exact, double* norms) {
    return frame.in_branch ? gram_.prefix_norms(node, rows, frame.gram, lists, exact, norms)
                           : factor_.prefix_norms(node, rows, frame.factor, lists, exact, norms);
  }
  bool small_gram(Rows rows, const Frame& frame, SmallGram& gram) const {
    return frame.in_branch && gram_.small_gram(rows, frame.gram, gram);
  }
  double set_norm(const Frame& frame, Rows rows, double weight) {
    return frame.in_branch ? gram_.set_norm(frame.gram, rows, weight)
                           : factor_.set_norm(frame.factor, rows, weight);
  }
  void group_gram(const Frame& frame, Rows rows, Rows group, std::span<const double> group_weight,
                  std::span<double> sums) {
    if (frame.in_branch) return gram_.group_gram(frame.gram, rows, group, group_weight, sums);
    factor_.group_gram(frame.factor, rows, group, group_weight, sums);
  }
  std::size_t group_width(const Frame& frame) const {
    return frame.in_branch ? 0 : factor_.group_width(frame.factor);
  }
  void group_sums(const Frame& frame, Rows rows, Rows group, std::span<const double> group_weight,
                  std::span<double> sums) {
    factor_.group_sums(frame.factor, rows, group, group_weight, sums);
  }

 private:
  const std::int64_t most_rows_;
  FactorScorer factor_;
  GramScorer gram_;
};

}  // namespace okforest
