#include "core/hybrid.hpp"

#include <algorithm>

namespace okforest {

void HybridScorer::begin(std::span<const double> weight, Rows rows) {
  factor_.begin(weight, rows);
  gram_.begin(weight, rows);
}

void HybridScorer::enter(Node& node, Rows rows, const Frame* parent, Frame& frame) {
  const bool inside = parent != nullptr && parent->in_branch;
  frame.in_branch = inside || static_cast<std::int64_t>(rows.size()) <= most_rows_;
  if (!frame.in_branch) {
    return factor_.enter(node, rows, parent == nullptr ? nullptr : &parent->factor, frame.factor);
  }
  if (!inside) gram_.begin_branch(rows);
  gram_.enter(node, rows, inside ? &parent->gram : nullptr, frame.gram);
}

void HybridScorer::divide(Frame* frame, Rows left, Rows right) {
  if (frame == nullptr) return;
  if (frame->in_branch) return gram_.divide(&frame->gram, left, right);
  // Two new branches do not need the sums.
  if (static_cast<std::int64_t>(std::max(left.size(), right.size())) <= most_rows_) return;
  factor_.divide(&frame->factor, left, right);
}

}  // namespace okforest
