#include "core/forest.hpp"

#include <algorithm>
#include <ranges>

namespace okforest {

void Tree::graft(std::int32_t leaf, const Tree& branch) {
  // The root of the branch takes the place of the leaf; its other nodes follow.
  const auto first_node = static_cast<std::int32_t>(nodes.size()) - 1;
  const auto first_word = static_cast<std::int32_t>(subset_words.size());
  const std::int32_t begin = nodes[leaf].begin;
  std::ranges::copy(branch.members, members.begin() + begin);
  subset_words.insert(subset_words.end(), branch.subset_words.begin(), branch.subset_words.end());
  for (std::size_t k = 0; k < branch.nodes.size(); ++k) {
    TreeNode node = branch.nodes[k];
    node.begin += begin;
    node.end += begin;
    if (node.left >= 0) node.left += first_node;
    if (node.subset >= 0) node.subset += first_word;
    if (k == 0) {
      nodes[leaf] = node;
    } else {
      nodes.push_back(node);
    }
  }
}

void Tree::number_by_level() {
  std::vector<TreeNode> ordered(nodes.size());
  std::vector<std::uint64_t> words;
  ordered[0] = nodes[0];
  std::int32_t n_ordered = 1;
  // Nodes that are split and not yet visited have the old number of their left child.
  for (std::int32_t k = 0; k < n_ordered; ++k) {
    TreeNode& node = ordered[k];
    if (node.left < 0) continue;
    ordered[n_ordered] = nodes[node.left];
    ordered[n_ordered + 1] = nodes[node.left + 1];
    node.left = n_ordered;
    n_ordered += 2;
    if (node.subset < 0) continue;
    const auto first = subset_words.begin() + node.subset;
    node.subset = static_cast<std::int32_t>(words.size());
    words.insert(words.end(), first, first + node.n_words);
  }
  nodes.swap(ordered);
  subset_words.swap(words);
}

void Joiner::add(std::int64_t number, const Tree& tree) {
  std::lock_guard lock(mutex_);
  if (number != static_cast<std::int64_t>(n_joined_)) {
    waiting_[number] = tree;
    return;
  }
  append(tree);
  for (; n_joined_ < waiting_.size() && waiting_[n_joined_]; waiting_[n_joined_ - 1].reset()) {
    append(*waiting_[n_joined_]);
  }
}

void Joiner::append(const Tree& tree) {
  const auto field = [&](auto TreeNode::* of) { return std::views::transform(tree.nodes, of); };
  extend(forest_.feature, field(&TreeNode::feature));
  extend(forest_.subset, field(&TreeNode::subset));
  extend(forest_.left, field(&TreeNode::left));
  extend(forest_.begin, field(&TreeNode::begin));
  extend(forest_.end, field(&TreeNode::end));
  extend(forest_.missing_left, field(&TreeNode::missing_left));
  extend(forest_.threshold, field(&TreeNode::threshold));
  extend(forest_.weight, field(&TreeNode::weight));
  extend(forest_.variance, field(&TreeNode::variance));
  extend(forest_.members, tree.members);
  extend(forest_.times, tree.times);
  extend(forest_.subset_words, tree.subset_words);
  const auto end = [](const auto& all) { return static_cast<std::int64_t>(all.size()); };
  forest_.node_offsets.push_back(end(forest_.feature));
  forest_.member_offsets.push_back(end(forest_.members));
  forest_.subset_offsets.push_back(end(forest_.subset_words));
  ++n_joined_;
}

// Reserves memory for all trees, assuming that the rest are as large as those so far. Reserved
// memory that is never written to is not used.
template <class Range, class Field>
void Joiner::extend(Field& all, const Range& more) const {
  const std::size_t n = all.size() + std::ranges::size(more);
  if (n > all.capacity()) {
    const double per_tree = static_cast<double>(n) / static_cast<double>(n_joined_ + 1);
    const double expected = 1.05 * per_tree * static_cast<double>(waiting_.size());
    all.reserve(std::max(n, static_cast<std::size_t>(expected)));
  }
  all.insert(all.end(), std::ranges::begin(more), std::ranges::end(more));
}

}  // namespace okforest
